"""Echo: the prompt is returned in front of the text, and nothing else changes."""

from __future__ import annotations

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.checks.logprobs import token_strings, unfiltered_choices
from conformance.judge.checks.logprobs_text import prompt_of
from conformance.judge.comparison import (
    attribute_to,
    comparable,
    compare,
    contrast,
    members,
    not_comparable,
    numbered,
    same_choices,
)
from conformance.judge.fixtures import choice, completion, example, plain, stream, usage
from conformance.judge.token_text import echoed_length, is_text, keeps, same_but_for_a_space
from conformance.model import ContextOverflow
from conformance.model.exchange import Choice, Exchange, Group
from conformance.model.json_text import dumps
from conformance.model.request_view import RequestView

LONG = 1000  # characters from which a prompt may exceed the context and be shortened, where that is allowed. A choice
MOST_SHOWN = 120  # characters of a prompt in a message
UNKNOWN = -1  # the end of a prompt that is not text
ECHO = {"echo": True, "prompt": "1, 2,"}
ZERO = {"echo": True, "prompt": "1, 2,", "max_tokens": 0}


def echoes_text(request: RequestView, context: CheckContext) -> bool:
    """Expected where a prompt that is text is to be echoed."""
    return request.echo and any(isinstance(prompt, str) and prompt and is_text(prompt) for prompt in request.prompts)


def _prompt_end(request: RequestView, answer: Choice, context: CheckContext) -> int | None:
    """Where the prompt ends in the text; None where the text does not begin with it, UNKNOWN for token ids."""
    prompt = prompt_of(request, answer.index)
    if not isinstance(prompt, str) or not prompt or not is_text(prompt):
        return UNKNOWN
    end = echoed_length(answer.text, prompt)
    refused = context.contract.semantics.context_overflow is ContextOverflow.REFUSE
    if end is None and len(prompt) >= LONG and not refused:
        start = prompt.find(answer.text[:32]) if answer.text else -1
        end = len(prompt) - start if start >= 0 and answer.text.startswith(prompt[start:]) else None
    return end


@check(
    "echo",
    Scope.SUCCESS,
    expected_when=echoes_text,
    good=lambda: (
        example(plain(completion(choice("1, 2, 3")), ECHO)) + example(plain(completion(choice("<s> 1, 2, 3")), ECHO))
    ),
    bad=lambda: (
        example(plain(completion(choice(" 3")), ECHO))
        + example(plain(completion(choice("caf\u00e9, 3")), {"echo": True, "prompt": "cafe\u0301,"}))
        + example(stream(completion(choice(" 3, ")), completion(choice("4")), request=ECHO))
    ),
)
def echo_begins_with_prompt(x: Exchange, context: CheckContext) -> Findings:
    """With `echo` each text begins with the prompt that it answers, as it was sent.

    Callers cut the text at the prompt's length: without the prompt, or with one that was normalised or escaped, they
    discard a part of the answer. A prompt that the listed tokens spell in another way was changed by the tokenizer.

    Fix: put each prompt in front of each of its choices, unchanged, in a stream in the first chunk.
    """
    request = context.request(x)
    if not request.echo or not numbered(x, context):
        return
    for answer in unfiltered_choices(x):
        end = _prompt_end(request, answer, context)
        if end == UNKNOWN:
            continue
        prompt = str(prompt_of(request, answer.index))
        shortened = end is not None and end < len(prompt) and len(prompt) >= LONG  # to the end that fits the context
        same = shortened or keeps(answer.text, prompt) or (end is not None and _is_spelled(answer))
        observed, expected = contrast(answer.text[: len(prompt) + 8], prompt)
        if end is not None:  # both look alike
            observed, expected = (dumps(part)[:MOST_SHOWN] for part in (answer.text[:end], prompt))
        yield expect(same, f"the text begins with {observed}", f"the prompt {expected}", answer.at)


def _is_spelled(answer: Choice) -> bool:
    """Whether the listed tokens spell the text, so that a change of the prompt is the tokenizer's."""
    return "".join(token_strings(answer.logprobs or {}) or ()) == answer.text


@check(
    "echo",
    Scope.SUCCESS,
    expected_when=lambda request, context: echoes_text(request, context) and request.max_tokens == 0,
    good=lambda: example(plain(completion(choice("1, 2,"), usage=usage(4, 0)), ZERO)),
    bad=lambda: example(plain(completion(choice("1, 2, 3"), usage=usage(4, 1)), ZERO)),
)
def echo_of_zero_tokens(x: Exchange, context: CheckContext) -> Findings:
    """With `echo` and `max_tokens: 0` the text is the prompt and nothing more.

    This is how a given text is scored; an additional token becomes part of the score.

    Fix: run the prompt through the model, and generate nothing.
    """
    request = context.request(x)
    if not request.echo or request.max_tokens != 0:
        return
    for answer in unfiltered_choices(x):
        end = _prompt_end(request, answer, context)
        if end is None or end == UNKNOWN:
            continue  # that the prompt is absent is judged by echo_begins_with_prompt
        rest = answer.text[end:]
        yield expect(not rest, f"{show(rest)} follows the prompt", "nothing, as max_tokens is 0", answer.at)


@check(
    "echo",
    Scope.GROUP,
    group="echo",
    good=lambda: example(_pair("1, 2, 3, 4")),
    bad=lambda: example(_pair("1, 2, 4, 3", copies=3)),
)
def echo_adds_only_the_prompt(group: Group, context: CheckContext) -> Findings:
    """With `echo` the text is the prompt, followed by exactly the text that is generated without `echo`.

    Evaluations compare runs with and without echo; if echo changes the answer, the two measure different things.

    Fix: generate first, then put the prompt in front of what was generated.
    """

    def answers(x: Exchange) -> dict[int, str]:
        request = context.request(x)
        by_index: dict[int, str] = {}
        for index, item in x.choices.items():
            text = item.text.rstrip("\ufffd")
            empty = not request.echo or prompt_of(request, index) == ""  # what an empty prompt adds is no part of it
            end = 0 if empty else _prompt_end(request, item, context)
            if end == UNKNOWN:  # the text of token ids is known only by comparison with the text without echo
                tails = [other.choices[index].text for other in group.all("without") if index in other.choices]
                end = next((len(text) - len(tail) for tail in tails if comparable(x) and text.endswith(tail)), None)
                by_index[index] = text[end:] if end else text
            elif end is not None:
                by_index[index] = text[end:]
        return by_index

    yield from same_choices(group, ("without", "with"))
    roles = ("without", "with")
    yield from compare(group, roles, answers, "the text after the prompt", context, same=same_but_for_a_space)


@check(
    "echo",
    Scope.GROUP,
    group="echo",
    good=lambda: example(_pair("1, 2, 3, 4")),
    bad=lambda: example(_pair("1, 2,")),
)
def echo_comes_with_a_completion(group: Group, context: CheckContext) -> Findings:
    """With `echo` the text is more than the prompt where the same request without it generates text.

    Clients cut the prompt off by its length; what is left is empty, as if the model had nothing to say.

    Fix: return the prompt in addition to what was generated, not in its place.
    """
    if not_comparable(group, "without", "with"):
        return
    without = members(group, "without")[0]
    for x in members(group, "with"):
        for index, answer in x.choices.items():
            other = without.choices.get(index)
            end = _prompt_end(context.request(x), answer, context)
            if other is None or end is None or end == UNKNOWN or not other.text.strip():
                continue
            if {other.finish_reason, answer.finish_reason} != {context.length}:
                continue  # a text that ends by itself may end sooner
            observed = f"nothing follows the echoed prompt, although {show(other.text)} is generated without echo"
            yield attribute_to(expect(bool(answer.text[end:]), observed, "the completion", answer.at), x.case.id)


def _pair(text: str, copies: int = 1) -> Group:
    alone = plain(completion(choice(" 3, 4")), {"prompt": "1, 2,", "temperature": 0})
    both = plain(completion(choice(text)), {**ECHO, "temperature": 0})
    return Group("echo", "example", {"without": (alone,) * copies, "with": (both,) * copies})
