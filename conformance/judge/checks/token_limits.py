"""Token limits: what max_tokens does when it is reached, 0, absent, or larger than the context."""

from __future__ import annotations

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.checks.acceptance import error_text
from conformance.judge.checks.logprobs import unfiltered_choices
from conformance.judge.comparison import attribute_to, comparable, counted, members, not_comparable
from conformance.judge.fixtures import choice, completion, error, example, group, plain, stream, usage
from conformance.judge.tolerances import SMALL_MAX_TOKENS
from conformance.model import Inconclusive, Observation, Satisfied, Violation
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import MISSING
from conformance.model.parameter_traits import Role
from conformance.model.request_view import RequestView

FOUR = {"max_tokens": 4}
ENOUGH_FOR_TEXT = 8  # a choice: a character has at most 4 bytes, so 8 tokens complete at least one


def _exact_limit(request: RequestView) -> int:
    """The limit of each choice; 0 where none is known, the context may be shorter, or candidates are dropped."""
    limit = request.max_tokens or 0
    return limit if 0 < limit <= SMALL_MAX_TOKENS and request.best_of == request.n else 0


@check(
    "tokens",
    Scope.SUCCESS,
    expected_when=None,
    good=lambda: example(plain(completion(choice(), usage=usage(4, 4)), FOUR)),
    bad=lambda: (
        example(plain(completion(choice(), usage=usage(4, 3)), FOUR))
        + example(stream(completion(choice()), completion(usage=usage(4, 1)), request=FOUR))
    ),
)
def length_uses_the_limit(x: Exchange, context: CheckContext) -> Findings:
    """A choice that finishes with `length` has exactly max_tokens completion tokens.

    The reason says that the limit was reached; any other count means lost tokens or a wrong bill.

    Fix: count every generated token of each choice, including the last.
    """
    request = context.request(x)
    limit, count, prompt = _exact_limit(request), counted(x, "completion_tokens"), counted(x, "prompt_tokens")
    if not limit or count is None or (prompt or 0) > SMALL_MAX_TOKENS or x.error is not MISSING:
        return
    reasons = [answer.finish_reason for answer in x.choices.values()]
    full = reasons.count(context.length)
    if not full or "content_filter" in reasons:
        return
    observed = f"completion_tokens is {count}"
    if full == len(reasons):
        expected = f"{_product(full, limit)}, as every choice ended with `{context.length}`"
        yield expect(count == full * limit, observed, expected)
    else:
        expected = f"at least {_product(full, limit)} for the choices that ended with `{context.length}`"
        yield expect(count >= full * limit, observed, expected)


def _product(choices: int, limit: int) -> str:
    """The tokens of some choices that reached their limit."""
    return f"{choices * limit} ({choices} × {limit})" if choices > 1 else str(limit)


@check(
    "tokens",
    Scope.SUCCESS,
    expected_when=None,
    good=lambda: example(plain(completion(choice()), {"max_tokens": 16})),
    bad=lambda: example(plain(completion(choice("")), {"max_tokens": 16})),
)
def length_comes_with_text(x: Exchange, context: CheckContext) -> Findings:
    """A choice that reached a limit of more than a few tokens has text.

    If the text is empty, the client pays for tokens that it does not get.

    Fix: send all text that was decoded when the limit ends the generation.
    """
    request = context.request(x)
    limit = request.max_tokens
    may_be_invisible = request.get("logit_bias") or request.get(context.contract.by_role(Role.IGNORES_END))
    if limit is None or limit < ENOUGH_FOR_TEXT or may_be_invisible:
        return
    for answer in unfiltered_choices(x):
        if answer.finish_reason == context.length:
            observed = f"the text is empty though `{context.length}` ended it at {limit} tokens"
            yield expect(bool(answer.text), observed, "text", answer.at)


@check(
    "tokens",
    Scope.SUCCESS,
    expected_when=lambda request, _: request.max_tokens == 0 and not request.echo,
    good=lambda: example(plain(completion(choice(""), usage=usage(4, 0)), {"max_tokens": 0})),
    bad=lambda: example(plain(completion(choice(" 4"), usage=usage(4, 1)), {"max_tokens": 0})),
)
def max_tokens_zero(x: Exchange, context: CheckContext) -> Findings:
    """With `max_tokens: 0` no text is generated.

    Zero is the cheapest way to count or cache a prompt; read as "no limit" it is the most expensive.

    Fix: distinguish 0 from an absent limit, and return an empty text.
    """
    request = context.request(x)
    if request.max_tokens != 0 or request.echo:
        return
    for answer in unfiltered_choices(x):
        yield expect(not answer.text, f"the text is {show(answer.text)}", "no text, as max_tokens is 0", answer.at)


@check(
    "tokens",
    Scope.GROUP,
    group="default",
    expected_when=lambda request, _: request.raw("max_tokens") is MISSING,
    good=lambda: example(_default(16)),
    bad=lambda: example(_default(64)),
)
def default_max_tokens(group: Group, context: CheckContext) -> Findings:
    """Without `max_tokens` the documented default limits the text.

    Callers plan costs with the default; a server without one generates, and bills, until the model stops by itself.

    Fix: apply the documented default if the member is absent or null.
    """
    default = context.contract.default("max_tokens")
    if group.key.split(" ")[0] != "max_tokens" or not isinstance(default, int):
        return
    problem = not_comparable(group, "absent")
    if problem:
        yield problem
    for x in members(group, "absent"):
        count, choices = counted(x, "completion_tokens"), context.request(x).choices
        reasons = [answer.finish_reason for answer in x.choices.values()]
        if count is None:
            yield Inconclusive("the reply has no completion_tokens, so its length is unknown")
            continue
        limited = count == default * choices if set(reasons) == {context.length} else count <= default * choices
        observed = f"completion_tokens is {count} without max_tokens, finish_reason {show(reasons)}"
        expected = f"at most {default} for each choice, and exactly as many with `{context.length}`"
        yield attribute_to(expect(limited, observed, expected, "usage"), x.case.id)


@check(
    "tokens",
    Scope.GROUP,
    group="overflow",
    keyed=True,
    expected_when=None,
    good=lambda: (
        example(group("overflow", "x", control=plain(completion(choice())), probe=error()), behaviour="refuse")
        + example(
            group("overflow", "x", control=plain(completion(choice())), probe=plain(completion(choice()))),
            behaviour="truncate",
        )
        + example(group("overflow", "x unknown", control=_read(8, 8), long=error()), behaviour="refuse")
    ),
    bad=lambda: (
        example(
            group("overflow", "x", control=plain(completion(choice())), probe=_cut_by_the_context()),
            behaviour="refuse",
        )
        + example(group("overflow", "x", control=plain(completion(choice())), probe=error()), behaviour="truncate")
        + example(group("overflow", "x unknown", control=_read(8, 8), long=_read(9_000, 2_048)), behaviour="refuse")
    ),
)
def context_overflow(group: Group, context: CheckContext) -> Findings:
    """If prompt and max_tokens exceed the context, the request is refused or the text shortened, as documented.

    A silently shortened text loses its end; an undocumented refusal breaks callers that rely on the shortening.

    Fix: compare prompt tokens + max_tokens with the context before anything is generated, and do as documented.
    """
    behaviour = context.get("behaviour", "either")
    problem = not_comparable(group, "control")
    if problem:
        yield problem
        return
    if behaviour == "refuse":
        yield from _long_prompts(group, context)
    for x in group.all("probe"):
        refused = x.refused or x.status == 413
        if not refused and not comparable(x):
            status = f"HTTP {x.status}" if x.status else "no response"
            inside = " with an error inside" if x.successful and x.error is not MISSING else ""
            if inside and behaviour != "either":
                yield Violation(f"{status}{inside}; expected {_expected(behaviour)}", "", x.case.id)
            else:
                yield Inconclusive(f"the request beyond the context got {status}{inside}")
            continue
        observed_behaviour = "refuse" if refused else "truncate"
        if behaviour == "either":
            yield Observation("beyond the context", f"HTTP {x.status}")
            yield Satisfied()
        elif observed_behaviour != behaviour == "refuse" and not _context_evidence(group, x, context):
            yield Observation("max_tokens beyond any context", f"HTTP {x.status}, and the text ended by itself")
        else:
            evidence = _context_evidence(group, x, context) if not refused else ""
            observed = f"HTTP {x.status} beyond the context" + (f" ({evidence})" if evidence else "")
            yield attribute_to(expect(observed_behaviour == behaviour, observed, _expected(behaviour)), x.case.id)


def _long_prompts(group: Group, context: CheckContext) -> Findings:
    """A prompt that may be longer than the context is refused, or read whole, as far as its tokens are counted.

    Only the ids of tokens can be counted by a client, and only where the target counts those of the control.
    """
    control = members(group, "control")[0]
    counts = _ids_counted(control, context)
    for x in group.all("long"):
        if x.refused or x.status == 413:
            if group.key.endswith(" unknown"):
                yield Satisfied()
            continue
        sent_and_counted = _ids_counted(x, context) if comparable(x) else None
        if counts is None or counts[1] < counts[0] or sent_and_counted is None:
            continue
        number, count = sent_and_counted
        if count < number:
            observed = f"HTTP {x.status} with prompt_tokens {count} for a prompt of {number} ids, so it was cut"
            yield Violation(f"{observed}; expected {_expected('refuse')}", "usage", x.case.id)
        else:
            yield Observation("a prompt beyond many contexts", f"HTTP {x.status} to {number} tokens")


def _ids_counted(x: Exchange, context: CheckContext) -> tuple[int, int] | None:
    """The number of ids in the only prompt, and of prompt tokens in usage; None where either is unknown."""
    prompts, count = context.request(x).prompts, counted(x, "prompt_tokens")
    known = len(prompts) == 1 and isinstance(prompts[0], tuple) and count is not None
    return (len(prompts[0]), count or 0) if known else None


def _context_evidence(group: Group, x: Exchange, context: CheckContext) -> str:
    """What shows that the request exceeds the context: an error message, or where the text ended; else empty."""
    limit, count = context.request(x).max_tokens or 0, counted(x, "completion_tokens")
    for reply in group.all("long"):
        if reply.refused and "context" in error_text(reply).lower():
            return f"a long prompt was refused with {show(error_text(reply), 100)}"
    if group.key.endswith(" filled"):
        return "an error message gave its length, and the prompt leaves less room than max_tokens"
    cut = bool(x.choices) and all(answer.finish_reason == context.length for answer in x.choices.values())
    if not cut or count is None or count >= limit:
        return ""
    prompt = counted(x, "prompt_tokens")
    return f"`{context.length}` ended the text after {count} of {limit} tokens and a prompt of {prompt}"


def _expected(behaviour: str) -> str:
    return "a 4xx" if behaviour == "refuse" else "a text that ends with the context"


def _cut_by_the_context() -> Exchange:
    return plain(completion(choice(), usage=usage(4, 60)), {"max_tokens": 9_000_000})


def _read(ids: int, counted_tokens: int) -> Exchange:
    """A reply to a prompt with this number of ids."""
    return plain(completion(choice(), usage=usage(counted_tokens, 1)), {"prompt": [7] * ids, "max_tokens": 1})


def _default(tokens: int) -> Group:
    text, cut = " 4," * (tokens // 2), " 4," * 8
    absent = plain(completion(choice(text), usage=usage(4, tokens)), {"temperature": 0})
    explicit = plain(completion(choice(cut), usage=usage(4, 16)), {"temperature": 0, "max_tokens": 16})
    return group("default", "max_tokens", absent=absent, explicit=explicit)
