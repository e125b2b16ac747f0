"""Token limits: max_tokens is reached, respected at 0, has its documented default, and meets the end of the context."""

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
ENOUGH_FOR_TEXT = 8  # so many tokens that show nothing are no unfinished character


def _limited(request: RequestView) -> int:
    """The limit that the request names or the contract defaults to; 0 where none does, or a context may come first."""
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

    The reason says that the limit was reached; a count that says otherwise means lost tokens or a wrong bill.

    Fix: count every token that was generated, the last one included, in each choice.
    """
    request = context.request(x)
    limit, told, prompt = _limited(request), counted(x, "completion_tokens"), counted(x, "prompt_tokens")
    if not limit or told is None or (prompt or 0) > SMALL_MAX_TOKENS or x.error is not MISSING:
        return
    reasons = [found.finish_reason for found in x.choices.values()]
    full = reasons.count(context.length)
    if not full or "content_filter" in reasons:
        return
    owed = full * limit
    if full == len(reasons):
        yield expect(
            told == owed,
            f"completion_tokens is {told}",
            f"{full} × {limit}, as every choice has `{context.length}`",
        )
    else:
        yield expect(
            told >= owed,
            f"completion_tokens is {told}",
            f"at least {full} × {limit} for those with `{context.length}`",
        )


@check(
    "tokens",
    Scope.SUCCESS,
    expected_when=None,
    good=lambda: example(plain(completion(choice()), {"max_tokens": 16})),
    bad=lambda: example(plain(completion(choice("")), {"max_tokens": 16})),
)
def length_comes_with_text(x: Exchange, context: CheckContext) -> Findings:
    """A choice that reached the limit of more than a few tokens has text.

    An empty answer that claims to have used its tokens was paid for and lost on the way.

    Fix: send what was decoded before the limit, also where the generation is cut.
    """
    request = context.request(x)
    limit = request.max_tokens
    if (
        limit is None
        or limit < ENOUGH_FOR_TEXT
        or request.get("logit_bias")
        or request.get(context.contract.by_role(Role.IGNORES_END))
    ):
        return
    for found in unfiltered_choices(x):
        if found.finish_reason == context.length:
            yield expect(
                bool(found.text), f"the text is '' though `{context.length}` ended it at {limit}", "text", found.at
            )


@check(
    "tokens",
    Scope.SUCCESS,
    expected_when=lambda request, _: request.max_tokens == 0 and not request.echo,
    good=lambda: example(plain(completion(choice(""), usage=usage(4, 0)), {"max_tokens": 0})),
    bad=lambda: example(plain(completion(choice(" 4"), usage=usage(4, 1)), {"max_tokens": 0})),
)
def max_tokens_zero(x: Exchange, context: CheckContext) -> Findings:
    """With `max_tokens: 0` nothing is generated.

    Zero is the cheapest way to count or cache a prompt; read as "no limit" it is the most expensive.

    Fix: tell 0 from absent, and return an empty text.
    """
    request = context.request(x)
    if request.max_tokens != 0 or request.echo:
        return
    for found in unfiltered_choices(x):
        yield expect(not found.text, f"the text is {show(found.text)}", "'', as max_tokens is 0", found.at)


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

    Costs are planned with the default; a server without one writes, and bills, until the model stops by itself.

    Fix: apply the documented default where the member is absent or null.
    """
    default = context.contract.default("max_tokens")
    if group.key.split(" ")[0] != "max_tokens" or not isinstance(default, int):
        return
    problem = not_comparable(group, "absent")
    if problem:
        yield problem
    for x in members(group, "absent"):
        told, choices = counted(x, "completion_tokens"), context.request(x).choices
        reasons = [found.finish_reason for found in x.choices.values()]
        if told is None:
            yield Inconclusive("the reply tells no completion_tokens, so its length cannot be counted")
            continue
        fits = told == default * choices if set(reasons) == {context.length} else told <= default * choices
        observed = f"completion_tokens is {told} without max_tokens, finish_reason {show(reasons)}"
        expected = f"at most {default} per choice, and all of them with `{context.length}`"
        yield attribute_to(expect(fits, observed, expected, "usage"), x.case.id)


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
    ),
    bad=lambda: (
        example(
            group("overflow", "x", control=plain(completion(choice())), probe=_cut_by_the_context()),
            behaviour="refuse",
        )
        + example(group("overflow", "x", control=plain(completion(choice())), probe=error()), behaviour="truncate")
    ),
)
def context_overflow(group: Group, context: CheckContext) -> Findings:
    """Where prompt and max_tokens exceed the context, the request is refused, or the limit lowered, as promised.

    A silent cut loses the end of answers; a refusal where none was announced breaks callers that rely on the cut.

    Fix: compare prompt tokens + max_tokens with the context before anything is generated, and do as documented.
    """
    behaviour = context.get("behaviour", "either")
    problem = not_comparable(group, "control")
    if problem:
        yield problem
        return
    for x in group.all("probe"):
        refused = x.refused or x.status == 413
        if not refused and not comparable(x):
            told = f"HTTP {x.status}" if x.status else "no response"
            inside = ", an error inside" if x.successful and x.error is not MISSING else ""
            if inside and behaviour != "either":
                yield Violation(f"{told}{inside}; expected {_expected(behaviour)}", "", x.case.id)
            else:
                yield Inconclusive(f"the request beyond the context got {told}{inside}")
            continue
        did = "refuse" if refused else "truncate"
        if behaviour == "either":
            yield Observation("beyond the context", f"HTTP {x.status}")
            yield Satisfied()
        elif did != behaviour == "refuse" and not _context(group, x, context):
            yield Observation("max_tokens beyond any context", f"HTTP {x.status}, and the text ended by itself")
        else:
            known = _context(group, x, context) if did == "truncate" else ""
            told = f"HTTP {x.status} beyond the context" + (f" ({known})" if known else "")
            yield attribute_to(expect(did == behaviour, told, _expected(behaviour)), x.case.id)


def _context(group: Group, x: Exchange, context: CheckContext) -> str:
    """How the context is known to be too short: by the target's own words, or as it ended the text; else empty."""
    limit, told = context.request(x).max_tokens or 0, counted(x, "completion_tokens")
    for one in group.all("long"):
        if one.refused and "context" in error_text(one).lower():
            return f"a long prompt was refused with {show(error_text(one), 100)}"
    if group.key.endswith(" filled"):
        return "a refusal told its length, and the prompt leaves less room than max_tokens asks for"
    ended = bool(x.choices) and all(found.finish_reason == context.length for found in x.choices.values())
    if not ended or told is None or told >= limit:
        return ""
    prompt = counted(x, "prompt_tokens")
    return f"`{context.length}` ended the text after {told} of {limit} tokens, behind {prompt} of prompt"


def _expected(behaviour: str) -> str:
    return "a 4xx" if behaviour == "refuse" else "a text that ends with the context"


def _cut_by_the_context() -> Exchange:
    return plain(completion(choice(), usage=usage(4, 60)), {"max_tokens": 9_000_000})


def _default(tokens: int) -> Group:
    text, cut = " 4," * (tokens // 2), " 4," * 8
    absent = plain(completion(choice(text), usage=usage(4, tokens)), {"temperature": 0})
    explicit = plain(completion(choice(cut), usage=usage(4, 16)), {"temperature": 0, "max_tokens": 16})
    return group("default", "max_tokens", absent=absent, explicit=explicit)
