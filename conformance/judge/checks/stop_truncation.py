"""Stop sequences taken from the real output: they cut the text at the first match, and change nothing before it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.checks.stop import generated_text
from conformance.judge.comparison import (
    attribute_to,
    compare_values,
    constant,
    members,
    not_comparable,
    texts,
    unchanged,
)
from conformance.judge.fixtures import choice, completion, example, plain
from conformance.judge.near_ties import near_tie
from conformance.judge.token_text import ends_inside_a_token
from conformance.model import ENOUGH_REPLIES, Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Group

ROLES: Final = ("without", "with")


@dataclass(frozen=True)
class Match:
    """Where a stop sequence occurs in the text that was generated without it."""

    start: int
    end: int
    stop: str


@dataclass(frozen=True)
class Cut:
    """One choice, with stop sequences (`text`) and without them (`full`)."""

    full: str
    full_finish: str | None
    text: str
    finish: str | None
    matches: tuple[Match, ...]
    stops: tuple[str, ...]
    at: str
    case: str
    stopped: str  # this provider's finish_reason for a stop sequence

    @property
    def ends_in_match(self) -> bool:
        """Whether the text ends inside of a stop sequence that occurs in the text without it."""
        return any(match.start < len(self.text) < match.end for match in self.matches)

    @property
    def cut_at(self) -> Match | None:
        """The match at which the text ends, with all, a part or none of the sequence; None where it is not cut."""
        for match in self.matches:
            ends_in_match = self.full.startswith(self.text) and match.start <= len(self.text) <= match.end
            rest = self.text[match.end :]
            ends_after = self.text.startswith(self.full[: match.end]) and ends_inside_a_token(rest)
            ignored = self.text == self.full and self.finish == self.full_finish != self.stopped
            if ends_in_match or (rest and ends_after and not ignored):
                return match
        return None


def cuts(group: Group, context: CheckContext) -> Iterator[Cut | Inconclusive]:
    """Every choice that should be cut, or why it cannot be judged."""
    problem = not_comparable(group, *ROLES)
    if problem:
        yield problem
        return
    first = members(group, "without")[0]
    for x in members(group, "with"):
        request = context.request(x)
        for index, answer in x.choices.items():
            uncut = first.choices.get(index)
            full = generated_text(context.request(first), uncut) if uncut else None
            text = generated_text(request, answer)
            if uncut is None or full is None or text is None:
                continue
            matches = tuple(_first_matches(full, request.stops))
            if matches or text != full:
                yield Cut(
                    full=full,
                    full_finish=uncut.finish_reason,
                    text=text,
                    finish=answer.finish_reason,
                    matches=matches,
                    stops=request.stops,
                    at=answer.at,
                    case=x.case.id,
                    stopped=context.stop,
                )
            else:
                yield Inconclusive("no stop sequence occurs in the text without it")


def _first_matches(full: str, stops: tuple[str, ...]) -> Iterator[Match]:
    """The earliest match, and those that begin within it: one token may complete several, and any of them may count."""
    matches = [Match(full.find(stop), full.find(stop) + len(stop), stop) for stop in stops if stop in full]
    if matches:
        earliest = min(matches, key=lambda match: match.end)
        yield earliest
        yield from (match for match in matches if match is not earliest and match.start < earliest.end)


def _example(text: str, finish: str = "stop", copies: int = 1, stops: Sequence[str] = ("EF",)) -> Group:
    """Part of the alphabet, which should be cut at `EF`."""
    uncut = plain(completion(choice("DEF GHIJ")), {"temperature": 0})
    cut = plain(completion(choice(text, finish=finish)), {"temperature": 0, "stop": [*stops]})
    return Group("cut", "example", {"without": (uncut,) * copies, "with": (cut,) * copies})


@check(
    "stop",
    Scope.GROUP,
    group="cut",
    good=lambda: example(_example("D")) + example(_example("DEF")),
    bad=lambda: example(_example("DEF G", stops=("HI", "EF"))) + example(_example("", copies=3)),
)
def stop_cuts_earliest(group: Group, context: CheckContext) -> Findings:
    """The first match of any stop sequence ends the text, and nothing before it is lost.

    Text after the first match is not part of the answer; without the text before it the answer is incomplete.

    Fix: match across token boundaries, in the whole text, and keep everything before the first match.
    """
    for cut in cuts(group, context):
        if isinstance(cut, Inconclusive):
            yield cut
            continue
        match = cut.matches[0] if cut.matches else Match(len(cut.full), len(cut.full), "")
        if cut.cut_at or _partial_stop(cut):
            yield Satisfied(cut.at)
        elif cut.matches and cut.text.startswith(cut.full[: match.end]):
            later = _later_stop(cut)
            if later is None:  # judged by `stop_text_is_as_promised`
                yield Inconclusive(f"the text continues after {show(match.stop)}: no stop sequence cut it")
                continue
            observed = f"the text ends at {show(later)}, though {show(match.stop)} came first: {show(cut.text)}"
            yield Violation(f"{observed}; expected {show(cut.full[: match.start])}", cut.at, cut.case)
        elif not cut.text and any(f" {cut.full}".startswith(stop) for stop in cut.stops):
            yield Inconclusive("the text may begin with a space that is not shown, and that a stop sequence matches")
        else:
            yield _different_text(group, context, cut, match)


def _later_stop(cut: Cut) -> str | None:
    """The stop sequence at whose later match the text ends; None where no stop sequence had an effect."""
    cut_short = len(cut.text) < len(cut.full) or (cut.finish == cut.stopped != cut.full_finish)
    if not cut_short or not cut.full.startswith(cut.text):
        return None
    for stop in cut.stops:
        near = cut.full[max(0, len(cut.text) - len(stop)) : len(cut.text) + len(stop)]
        if stop in near:
            return stop
    return None


def _different_text(group: Group, context: CheckContext, cut: Cut, match: Match) -> Finding:
    """The finding on a text that is not the beginning of the one without the sequence: a defect, or another sample."""
    index = int(cut.at.rpartition(" ")[2])
    full_texts = [x.choices[index].text for x in members(group, "without") if index in x.choices]
    replies = [x for x in members(group, "with") if index in x.choices]
    if not constant(full_texts) or not all(context.request(x).greedy for x in replies):
        return Inconclusive("the target is not deterministic: the text differs between replies to one request")
    expected = cut.full[: match.start]
    valid = {cut.full[:end] for end in range(match.start, match.end + 1)}
    texts = [generated_text(context.request(x), x.choices[index]) or "" for x in replies]
    texts = [expected if text in valid else text for text in texts]
    finding = compare_values(
        [expected] * len(full_texts), texts, "the text", ("without, cut", "with"), at=cut.at, case=cut.case
    )
    if isinstance(finding, Satisfied):
        return Inconclusive("other replies to the same request were cut at the match")
    tied = near_tie([members(group, role) for role in ROLES], index, context)
    return Inconclusive(f"the texts differ, as they may at a near tie: {tied}") if tied else finding


@check(
    "stop",
    Scope.GROUP,
    group="cut",
    good=lambda: example(_example("D")) + example(_example("DEF")),
    bad=lambda: example(_example("DE")),
)
def no_partial_stop_leaks(group: Group, context: CheckContext) -> Findings:
    """No text ends with a part of the stop sequence that cut it.

    A stream cannot take back the first token of a stop sequence once it is sent: users see half a delimiter.

    Fix: hold back text while its end is the beginning of a stop sequence.
    """
    for cut in cuts(group, context):
        if isinstance(cut, Inconclusive):
            yield cut
            continue
        part = _partial_stop(cut)
        if part and not cut.ends_in_match and not _is_steady(group):
            yield Inconclusive("a text that is not always the same may end like a stop sequence", repeat=True)
        elif part:
            stop = next(stop for stop in cut.stops if part in stop)
            observed = f"the text ends with {show(part)}, a part of {show(stop)}"
            yield Violation(f"{observed}; expected all of the stop sequence or nothing of it", cut.at, cut.case)
        elif cut.cut_at:
            yield Satisfied(cut.at)


def _is_steady(group: Group) -> bool:
    """Whether enough replies in each role have one text for each choice."""
    sides = [[texts(x) for x in members(group, role)] for role in ROLES]
    return all(len(side) >= ENOUGH_REPLIES and constant(side) for side in sides)


def _partial_stop(cut: Cut) -> str:
    """The part of a stop sequence that the text ends with, if that sequence ended it; else empty."""
    if not cut.full.startswith(cut.text):
        return ""
    if any(len(cut.text) in {match.start, match.end} for match in cut.matches):
        return ""
    for match in cut.matches:
        if match.start < len(cut.text) < match.end:
            return cut.text[match.start :]
    if cut.cut_at or cut.finish != cut.stopped or len(cut.text) == len(cut.full):
        return ""
    for stop in cut.stops:  # the target stopped although only the beginning of the sequence was generated
        for size in range(len(stop) - 1, 1, -1):  # a single character is too likely by chance
            if cut.text.endswith(stop[:size]):
                return stop[:size]
    return ""


@check(
    "stop",
    Scope.GROUP,
    group="cut",
    good=lambda: example(_example("D"), text="excluded") + example(_example("DEF"), text="included"),
    bad=lambda: example(_example("DEF"), text="excluded") + example(_example("D"), text="included"),
)
def cut_keeps_or_drops_the_stop(group: Group, context: CheckContext) -> Findings:
    """The stop sequence that cut a text is left out of it, or kept in it, as the provider promises.

    A client that appends the delimiter, or strips it, relies on one of the two.

    Fix: cut before the match to leave it out, after the match to keep it.
    """
    rule = context.get("text", "either")
    for cut in cuts(group, context):
        if isinstance(cut, Inconclusive):
            yield cut
            continue
        match = cut.cut_at
        if match is None or match.start < len(cut.text) < match.end:
            continue  # judged by `stop_cuts_earliest` and `no_partial_stop_leaks`
        actual = "included" if len(cut.text) >= match.end else "excluded"
        observed = f"the stop sequence {show(match.stop)} is {actual} in {show(cut.text)}"
        yield attribute_to(expect(rule in {actual, "either"}, observed, f"it to be {rule}", cut.at), cut.case)


@check(
    "stop",
    Scope.GROUP,
    group="cut",
    good=lambda: example(_example("D"), reason="stop"),
    bad=lambda: example(_example("D", finish="length"), reason="stop"),
)
def stop_finishes_with_stop(group: Group, context: CheckContext) -> Findings:
    """A text that a stop sequence ended has the finish_reason `stop`.

    With `length` a client requests the continuation of a text that is complete.

    Fix: set the reason when the match is found, before the token limit is checked.
    """
    reason = context.get("reason", context.stop)
    for cut in cuts(group, context):
        if isinstance(cut, Inconclusive):
            yield cut
            continue
        match = cut.cut_at
        if match is None or (match.end == len(cut.full) and cut.full_finish != reason):
            continue  # not cut, or cut where the limit ends the text too
        observed = f"finish_reason is {show(cut.finish)} after a stop sequence"
        yield attribute_to(expect(cut.finish == reason, observed, show(reason), cut.at), cut.case)


@check(
    "stop",
    Scope.GROUP,
    group="never",
    good=lambda: example(_unmatched(" 4, 5")),
    bad=lambda: example(_unmatched(" 4,", copies=3)),
)
def stop_that_never_matches(group: Group, context: CheckContext) -> Findings:
    """A parameter that does not concern the text, such as a stop sequence that never occurs, leaves it unchanged.

    Callers send the same stop list with every prompt; it must not shorten texts that contain no stop sequence.

    Fix: act on a stop sequence only when all of it has been generated.
    """
    if not context.get("parameter") or group.key.split(" ")[0] == context["parameter"]:
        yield from unchanged(group, ROLES, context)


@check(
    "finish",
    Scope.GROUP,
    group="uncut",
    good=lambda: example(_at_the_limit("length")),
    bad=lambda: example(_at_the_limit("stop")),
)
def uncut_text_finishes_with_length(group: Group, context: CheckContext) -> Findings:
    """A text that reaches the limit finishes with `length`, whatever stop sequences were sent that it does not contain.

    After `stop` a client takes the text for complete; where only half a stop sequence came, or only the prompt has it,
    the rest of the text is lost.

    Fix: report `stop` only when all of a stop sequence was generated, not for a part of it or for one in the prompt.
    """
    if not_comparable(group, *ROLES):
        return
    without = members(group, "without")[0]
    for x in members(group, "with"):
        for answer in x.choices.values():
            other = without.choices.get(answer.index)
            if other is None or other.finish_reason != context.length:
                continue
            text = generated_text(context.request(x), answer)
            if text and text == generated_text(context.request(without), other):
                observed = (
                    f"finish_reason is {show(answer.finish_reason)} for the whole text, without any stop sequence"
                )
                finding = expect(answer.finish_reason == context.length, observed, show(context.length), answer.at)
                yield attribute_to(finding, x.case.id)


def _at_the_limit(finish: str) -> Group:
    without_stop = plain(completion(choice()), {"temperature": 0})
    other = plain(completion(choice(finish=finish)), {"temperature": 0, "stop": "QQQ"})
    return Group("uncut", "example", {"without": (without_stop,), "with": (other,)})


def _unmatched(text: str, copies: int = 1) -> Group:
    without_stop = plain(completion(choice()), {"temperature": 0})
    other = plain(completion(choice(text)), {"temperature": 0, "stop": "QQQ"})
    return Group("never", "stop", {"without": (without_stop,) * copies, "with": (other,) * copies})
