"""Log probabilities as numbers: finite, at most 0, as many as requested, and possible for one distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import takewhile
from math import exp
from typing import Any

from conformance.contract.parameters import bends
from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.logprobs import (
    ECHOED,
    SCORED,
    asks_for_alternatives,
    asks_for_logprobs,
    choices_with_logprobs,
    example_of,
    is_number,
)
from conformance.judge.checks.logprobs_text import first_generated
from conformance.judge.comparison import attribute_to, members, not_comparable
from conformance.judge.fixtures import choice, completion, example, group, logprobs, plain, stream
from conformance.judge.token_text import is_plain
from conformance.judge.tolerances import (
    CLAMPED,
    LOGPROB_MASS,
    LOGPROB_NOISE,
    LOGPROB_ROUNDING,
    NEAR_TIE,
    NEAR_ZERO_TEMPERATURE,
    NEGLIGIBLE_GAP,
)
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange, Group
from conformance.model.parameter_traits import Bends
from conformance.model.request_view import RequestView

TWO = {"logprobs": 2}
GREEDY = {"logprobs": 2, "temperature": 0}


def alters_distribution(request: RequestView, context: CheckContext) -> bool:
    """Whether the request changes the distribution, so that the values may not match the sampled tokens."""
    return bends(context.contract, request, *Bends)


def limits_alternatives(request: RequestView, context: CheckContext) -> bool:
    """Whether the request may rule out tokens, so that fewer alternatives are left; another context rules out none."""
    return bends(context.contract, request, *(set(Bends) - {Bends.CONTEXT}))


def alternatives_by_position(lists: Mapping[str, list[Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The alternatives of each position that lists any."""
    for index, top in enumerate(lists.get("top_logprobs", [])):
        if isinstance(top, Mapping) and top:
            yield index, top


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_logprobs,
    good=lambda: (
        example(example_of(SCORED))
        + example(plain(completion(choice("1, 2", logprobs=logprobs(["1", ",", " 2"], [None, -1.0, 0]))), ECHOED))
    ),
    bad=lambda: (
        example(example_of(SCORED, token_logprobs=[-0.1, 0.7, -0.2]))
        + example(example_of(SCORED, token_logprobs=[-0.1, None, -0.2]))
        + example(example_of(SCORED, top_logprobs=[{" 4": "-inf"}, {",": -1}, {" 5": -1}]))
    ),
)
def logprobs_are_finite(x: Exchange, context: CheckContext) -> Findings:
    """Every log probability is a finite number of at most 0.

    Sums and perplexities are computed from them; one null, string or positive value spoils the score of a whole text.

    Fix: clamp minus infinity to a large negative number, and take values from a log-softmax.
    """
    request = context.request(x)
    for answer, lists in choices_with_logprobs(x):
        values = lists.get("token_logprobs", [])
        first_may_be_null = request.echo and bool(request.prompts)
        entries = [(f"token_logprobs[{index}]", value) for index, value in enumerate(values)]
        if entries and entries[0][1] is None and first_may_be_null:
            entries = entries[1:]
        for index, top in alternatives_by_position(lists):
            entries += [(f"top_logprobs[{index}][{show(token, 24)}]", value) for token, value in top.items()]
        wrong = next(((name, value) for name, value in entries if not _is_logprob(value)), None)
        if wrong:
            yield Violation(f"{wrong[0]} is {show(wrong[1])}; expected a finite number of at most 0", answer.at)
        elif entries:
            yield Satisfied(answer.at)


def _is_logprob(value: Any) -> bool:
    return is_number(value) and value <= LOGPROB_ROUNDING


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_alternatives,
    good=lambda: (
        example(example_of(TWO, **logprobs([" 4", ",", " 5"], top=3)))
        + example(_marked("stop", " 4", "</s>"))
        + example(_marked("length", " 4", ""))
        + example(_late())
    ),
    bad=lambda: (
        example(example_of(TWO, **logprobs([" 4", ",", " 5"], top=4)))
        + example(example_of({**TWO, "suffix": "."}, **logprobs([" 4", ",", " 5"], top=1)))
        + example(example_of(TWO))
        + example(example_of(TWO, top_logprobs=MISSING_TOPS))
        + example(example_of(TWO, top_logprobs=[*logprobs([" 4", ","], top=2)["top_logprobs"], None]))
    ),
)
def top_logprobs_have_n(x: Exchange, context: CheckContext) -> Findings:
    """Each position lists as many alternatives as requested, or one more with the sampled token.

    Rankings and calibration read exactly that many; fewer lose candidates silently, more cost bandwidth.

    Fix: take the N likeliest tokens, and add the sampled one if it is missing.
    """
    request = context.request(x)
    number = request.logprobs
    if not number or number < 0:
        return
    for answer, lists in choices_with_logprobs(x):
        if not lists.get("tokens") or "top_logprobs" not in lists:
            continue
        tops = [top for index, top in enumerate(lists["top_logprobs"]) if top or index or not request.echo]
        if request.echo and not tops and len(lists["tokens"]) == 1:
            continue  # only the first token of the prompt, which has no alternatives
        sizes = [len(top) if isinstance(top, Mapping) else 0 for top in tops]
        longest = max(sizes, default=0)
        if longest > number + 1:
            yield Violation(f"a position lists {longest} alternatives; expected {number}, or {number + 1}", answer.at)
            continue
        bare = sizes.count(0) - (sizes[-1:] == [0] and _may_end_the_text(answer, context))
        if bare and not limits_alternatives(request, context):
            observed = f"{bare} of {len(sizes)} positions list none, others up to {longest}"
            yield Violation(f"{observed}; expected {number} alternatives each, or {number + 1}", answer.at)
            continue
        # Tokens with equal spellings share one member of the map, so some positions may list fewer, but not most.
        short = [size for top, size in zip(tops, sizes, strict=True) if _lists_too_few(top, number)]
        if not limits_alternatives(request, context) and (not sizes or len(short) * 2 > len(sizes)):
            observed = (
                f"{len(short)} of {len(sizes)} positions list fewer, such as {short[0]}" if short else "none lists any"
            )
            yield Violation(f"{observed}; expected {number} alternatives each, or {number + 1}", answer.at)
            continue
        yield Satisfied(answer.at)


def _may_end_the_text(answer: Choice, context: CheckContext) -> bool:
    """Whether the last token may be the end-of-text token, which has no alternatives."""
    token = (answer.logprobs or {}).get("tokens", [""])[-1]
    in_text = _is_comparable(token) and bool(token) and answer.text.endswith(token)
    return answer.finish_reason != context.length or not in_text


def _marked(reason: str, text: str, mark: str) -> Exchange:
    """A text with an end-of-text token, which has no alternatives."""
    lists = {**logprobs([text, mark], top=2), "top_logprobs": [*logprobs([text], top=2)["top_logprobs"], None]}
    return plain(completion(choice(text, finish=reason, logprobs=lists)), TWO)


def _late() -> Exchange:
    """An echo streamed token by token, of which the first has no alternatives."""
    scored = [logprobs([token], [value], top=2) for token, value in (("1", None), (",", -1.0), (" 2", -0.5))]
    bare = {**scored[0], "top_logprobs": None}
    parts = [choice(lists["tokens"][0], finish=None, logprobs=lists) for lists in (bare, *scored[1:])]
    return stream(
        *map(completion, parts), completion(choice("", logprobs=None)), request={**TWO, "echo": True, "prompt": "1,"}
    )


MISSING_TOPS: list[Any] = [None, None, None]


def _lists_too_few(top: Any, number: int) -> bool:
    """Whether a position lists fewer alternatives than requested, which equal spellings do not explain."""
    if not isinstance(top, Mapping):
        return True
    return len(top) < number and all(is_plain(token) for token in top)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_alternatives,
    good=lambda: example(example_of(SCORED)),
    bad=lambda: (
        example(example_of(SCORED, top_logprobs=[{"~": -0.1}, {"~": -0.1}, {"~": -0.1}]))
        + example(example_of({"logprobs": 0}, top_logprobs=[{" 4": -0.1}, {" 5": -0.1}, {" 5": -0.1}]))
    ),
)
def sampled_token_is_listed(x: Exchange, context: CheckContext) -> Findings:
    """The sampled token is among the alternatives of its position.

    Clients look up the rank of the sampled token in the map; if it is missing they raise or show nothing.

    Fix: add the sampled token to the N likeliest, which makes at most N + 1.
    """
    request = context.request(x)
    if request.logprobs is None:
        return
    for answer, lists in choices_with_logprobs(x):
        tokens = lists.get("tokens", [])
        sampled = range(first_generated(request, answer, tokens), len(tokens))
        positions = [(index, tokens[index], top) for index, top in alternatives_by_position(lists) if index in sampled]
        positions = [(index, token, top) for index, token, top in positions if _is_comparable(token)]
        # The first token of a text may be shown without the space that it begins with.
        unlisted = [(index, token, top) for index, token, top in positions if token not in top]
        absent = [(token, top) for index, token, top in unlisted if index or f" {token}" not in top]
        if absent:
            token, top = absent[0]
            observed = f"{len(absent)} of {len(positions)} sampled tokens are not listed, such as {show(token)}"
            yield Violation(f"{observed}; expected it among {show(list(top))}", answer.at)
        elif positions:
            yield Satisfied(answer.at)


def _is_comparable(token: Any) -> bool:
    """Whether a token has a single spelling, so that it can be looked up."""
    return isinstance(token, str) and is_plain(token)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=asks_for_alternatives,
    good=lambda: example(example_of(TWO, **logprobs([" 4", ",", " 5"], [-0.5] * 3, top=2))),
    bad=lambda: (
        example(example_of(TWO, top_logprobs=[{" 4": -0.25, "~": -0.25}, {",": -0.25}, {" 5": -0.25}]))
        + example(example_of(TWO, top_logprobs=[{" 4": -2.0}, {",": -0.25}, {" 5": -0.25}]))
    ),
)
def top_logprobs_are_plausible(x: Exchange, context: CheckContext) -> Findings:
    """The alternatives are of one distribution: probabilities sum to at most 1, and a token has one log probability.

    Confidence, entropy and scores are computed from these values; logits, or values of another step, mislead.

    Fix: normalise over the whole vocabulary, at the step that chose the token.
    """
    for answer, lists in choices_with_logprobs(x):
        positions = list(_scored_positions(lists))
        messages = [message for position in positions for message in _contradictions(*position)]
        if messages:
            yield Violation(messages[0], answer.at)
        elif positions:
            yield Satisfied(answer.at)


@check(
    "logprobs",
    Scope.SUCCESS,
    expected_when=lambda request, context: asks_for_alternatives(request, context) and _is_greedy(request, context),
    good=lambda: example(plain(completion(choice(" 4", logprobs=logprobs([" 4"], [-0.5], top=2))), GREEDY)),
    bad=lambda: example(_passed_over()),
)
def greedy_takes_the_likeliest(x: Exchange, context: CheckContext) -> Findings:
    """At temperature 0 the sampled token is the likeliest of the alternatives, but for near ties.

    Classifiers read the answer and its rivals at once; an answer below a rival makes either of them wrong.

    Fix: list the alternatives of the step that chose the token, and choose the likeliest at temperature 0.
    """
    request = context.request(x)
    if not _is_greedy(request, context):
        return
    # Above temperature 0 another token has some probability, and the values may be those after temperature.
    gap = NEGLIGIBLE_GAP if request.number("temperature", 1) else NEAR_TIE
    for answer, lists in choices_with_logprobs(x):
        positions = [(token, value, top) for token, value, top in _scored_positions(lists) if value is not None]
        passed = next(
            (position for position in positions if max(position[2].values()) > (position[1] or 0) + gap), None
        )
        if passed:
            token, value, top = passed
            best = max(top, key=lambda name: top[name])
            seen = f"greedy sampling took {show(token)} at {value} although {show(best)} has {top[best]}"
            yield Violation(f"{seen}; expected the likeliest token", answer.at)
        elif positions:
            yield Satisfied(answer.at)


def _is_greedy(request: RequestView, context: CheckContext) -> bool:
    """Whether a request takes the likeliest token at each position that its reply lists."""
    nearly_zero = request.number("temperature", 1) <= NEAR_ZERO_TEMPERATURE
    return nearly_zero and not request.echo and not alters_distribution(request, context)


def _scored_positions(lists: Mapping[str, Any]) -> Iterator[tuple[Any, float | None, Mapping[str, float]]]:
    """Each position with alternatives that are numbers: the sampled token, its log probability, the alternatives."""
    tokens, values = lists.get("tokens", []), lists.get("token_logprobs", [])
    for index, top in alternatives_by_position(lists):
        if top and all(map(_is_logprob, top.values())):  # what is no number is judged by `logprobs_are_finite`
            value = values[index] if index < len(values) and _is_logprob(values[index]) else None
            yield tokens[index] if index < len(tokens) else None, value, top


def _contradictions(token: Any, value: float | None, top: Mapping[str, float]) -> Iterator[str]:
    """What one distribution cannot have at a position."""
    mass = sum(map(exp, top.values()))
    if mass > LOGPROB_MASS:
        yield f"the probabilities of the alternatives {show(dict(top))} sum to {mass:.3f}; expected at most 1"
    if value is not None and _is_comparable(token) and token in top and abs(top[token] - value) > LOGPROB_NOISE:
        yield (
            f"the sampled token {show(token)} has {value} in token_logprobs and {top[token]} among the alternatives; "
            "expected one value"
        )


def _passed_over() -> Exchange:
    """A reply at temperature 0 with the second best token."""
    lists = {**logprobs([" 4"], [-2.0]), "top_logprobs": [{" 4": -2.0, "~": -0.5}]}
    return plain(completion(choice(" 4", logprobs=lists)), GREEDY)


@check(
    "logprobs",
    Scope.GROUP,
    group="ranks",
    good=lambda: example(_ranked([" 5", " 6"])) + example(_ranked([" 5", " 6", " 8"], sampled=" 8")),
    bad=lambda: example(_ranked([" 5", " 7"])) + example(_ranked([" 6", " 7", " 8"], sampled=" 8")),
)
def alternatives_are_the_likeliest(group: Group, context: CheckContext) -> Findings:
    """Of two requests that differ in `logprobs`, the one with fewer alternatives lists the likeliest of the other.

    Rankings and classifiers read the first few; where one is passed over, another answer appears to be the runner-up.

    Fix: sort the whole distribution, take the first N, and only then add the sampled token.
    """
    problem = not_comparable(group, "many", "few")
    if problem:
        yield problem
        return
    many = members(group, "many")[0]
    for x in members(group, "few"):
        for answer in x.choices.values():
            other = many.choices.get(answer.index)
            findings = list(_passed_over_in(answer, other, context.request(x).logprobs or 0)) if other else []
            violation = next((finding for finding in findings if isinstance(finding, Violation)), None)
            yield attribute_to(violation or next(iter(findings), _NOTHING_TO_RANK), x.case.id)


_NOTHING_TO_RANK: Finding = Inconclusive("the two replies list no alternatives of the same token")


def _passed_over_in(few: Choice, many: Choice, number: int) -> Iterator[Finding]:
    """The findings on the positions before which both replies have the same tokens."""
    lists, others = few.logprobs or {}, many.logprobs or {}
    tokens = lists.get("tokens", [])
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(tokens, others.get("tokens", []), strict=False))))
    longer = dict(alternatives_by_position(others))
    for index, top in alternatives_by_position(lists):
        longer_top = longer.get(index, {})
        numbers = all(_is_logprob(value) and value > CLAMPED for value in (*top.values(), *longer_top.values()))
        if index > same or not longer_top or not numbers or not all(map(_is_comparable, (*top, *longer_top))):
            continue
        # the sampled token may be listed in addition, however unlikely it is
        requested = sorted(top.values(), reverse=True)[:number]
        passed = {name: value for name, value in longer_top.items() if name not in top}
        if requested and passed and max(passed.values()) > requested[-1] + NEAR_TIE:
            best = max(passed, key=lambda name: passed[name])
            observed = f"{show(best)} with {passed[best]} is not among the {number} alternatives {show(dict(top))}"
            yield Violation(f"{observed}; expected the {number} likeliest of {show(dict(longer_top))}", few.at)
        elif requested:
            yield Satisfied(few.at)


def _ranked(names: list[str], sampled: str = " 5") -> Group:
    """Alternatives of which these are listed where two were requested, and all of them where five were."""
    values = {" 5": -0.5, " 6": -1.5, " 7": -3.0, " 8": -5.0}

    def reply(number: int, names: list[str]) -> Exchange:
        lists = {**logprobs([sampled], [values[sampled]]), "top_logprobs": [{name: values[name] for name in names}]}
        return plain(completion(choice(sampled, logprobs=lists)), {"logprobs": number, "temperature": 0})

    return group("ranks", many=reply(5, list(values)), few=reply(2, names))
