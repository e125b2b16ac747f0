"""Usage: what a completion cost, and where a stream says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from conformance.asked import Asked
from conformance.catalogue import Findings, Scope, Terms, check, expect, show
from conformance.examples import choice, completion, example, plain, stream, usage
from conformance.exchange import Document, Exchange
from conformance.strictjson import MISSING

ASKED = {"stream_options": {"include_usage": True}}


def asks_for_usage(asked: Asked, terms: Terms) -> bool:
    """Due on streams that ask for usage."""
    return asked.include_usage


def reports(x: Exchange) -> Iterator[Document]:
    """The documents that carry a usage object."""
    return (document for document in x.documents if isinstance(document.usage, Mapping))


@check(
    "usage",
    Scope.STREAM,
    due=asks_for_usage,
    good=lambda: example(stream(completion(choice()), completion(usage=usage()), asked=ASKED)),
    bad=lambda: example(stream(completion(choice(), usage=usage()), asked=ASKED)),
)
def usage_chunk_has_no_choices(x: Exchange, terms: Terms) -> Findings:
    """The chunk that reports usage has an empty choices list.

    Clients tell the accounting chunk from text by its empty choices; a choice beside usage is counted or shown twice.

    Fix: send usage in a chunk of its own, with `"choices": []`, after the last text and before `[DONE]`.
    """
    if not terms.asked(x).include_usage:
        return
    for document in reports(x):
        choices = document.value.get("choices", MISSING)
        yield expect(choices == [], f"choices is {show(choices)} beside usage", "[]", document.at)


@check(
    "usage",
    Scope.SUCCESS,
    good=lambda: example(plain(completion(choice(), usage=usage(4, 4)))),
    bad=lambda: example(plain(completion(choice(), usage=usage(4, 4, total=9)))),
)
def usage_adds_up(x: Exchange, terms: Terms) -> Findings:
    """Total tokens are prompt tokens plus completion tokens.

    Bills and budgets are computed from any two of the three numbers; a total that disagrees charges the wrong amount.

    Fix: compute `total_tokens` from the other two at the moment they are reported.
    """
    for document in reports(x):
        parts = [document.usage.get(name) for name in ("prompt_tokens", "completion_tokens", "total_tokens")]
        if not all(isinstance(part, (int, float)) and not isinstance(part, bool) for part in parts):
            continue
        prompt, generated, total = parts
        yield expect(
            total == prompt + generated, f"total_tokens is {total}", f"{prompt} + {generated}", f"{document.at} /usage"
        )
