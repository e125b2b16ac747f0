"""Stop sequences taken from the real output: the text with them is the text without, cut at the first match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, expect, show
from conformance.judge.checks.stop import generated_text
from conformance.judge.comparison import attribute_to, compare_values, constant, members, not_comparable, unchanged
from conformance.judge.fixtures import choice, completion, example, plain
from conformance.judge.near_ties import near_tie
from conformance.judge.token_text import ends_inside_a_token
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Group

ROLES: Final = ("without", "with")


@dataclass(frozen=True)
class Match:
    """Where a stop sequence stands in the text that was generated without it."""

    start: int
    end: int
    stop: str


@dataclass(frozen=True)
class Cut:
    """One choice with the stop sequences beside the same choice without: the whole text, and where it may end."""

    whole: str
    whole_finish: str | None
    text: str
    finish: str | None
    matches: tuple[Match, ...]
    stops: tuple[str, ...]
    at: str
    case: str
    stopped: str  # what this provider calls the end by a stop sequence

    @property
    def made(self) -> Match | None:
        """The match at which the text was cut, whether it kept the sequence, a part of it, or none."""
        for match in self.matches:
            kept = self.whole.startswith(self.text) and match.start <= len(self.text) <= match.end
            beyond = self.text[match.end :]
            over = self.text.startswith(self.whole[: match.end]) and ends_inside_a_token(beyond)
            ignored = self.text == self.whole and self.finish == self.whole_finish != self.stopped
            if kept or (beyond and over and not ignored):
                return match
        return None


def cuts(group: Group, context: CheckContext) -> Iterator[Cut | Inconclusive]:
    """Every choice that was to be cut, or why it shows nothing."""
    problem = not_comparable(group, *ROLES)
    if problem:
        yield problem
        return
    models = members(group, "without")
    for x in members(group, "with"):
        request = context.request(x)
        for index, found in x.choices.items():
            model = models[0].choices.get(index)
            whole = generated_text(context.request(models[0]), model) if model else None
            text = generated_text(request, found)
            if model is None or whole is None or text is None:
                continue
            matches = tuple(_first(whole, request.stops))
            if matches or text != whole:
                ends = (model.finish_reason, text, found.finish_reason)
                yield Cut(whole, *ends, matches, request.stops, found.at, x.case.id, context.stop)
            else:
                yield Inconclusive("no stop sequence occurs in the text without it")


def _first(whole: str, stops: tuple[str, ...]) -> Iterator[Match]:
    """The earliest match, and those that begin within it: one token may complete several, and either may be taken."""
    found = [Match(whole.find(stop), whole.find(stop) + len(stop), stop) for stop in stops if stop in whole]
    if found:
        earliest = min(found, key=lambda match: match.end)
        yield earliest
        yield from (match for match in found if match is not earliest and match.start < earliest.end)


def _example(text: str, finish: str = "stop", times: int = 1, stops: Sequence[str] = ("EF",)) -> Group:
    """An alphabet that is to be cut at `EF`."""
    whole = plain(completion(choice("DEF GHIJ")), {"temperature": 0})
    cut = plain(completion(choice(text, finish=finish)), {"temperature": 0, "stop": [*stops]})
    return Group("cut", "example", {"without": (whole,) * times, "with": (cut,) * times})


@check(
    "stop",
    Scope.GROUP,
    group="cut",
    good=lambda: example(_example("D")) + example(_example("DEF")),
    bad=lambda: example(_example("DEF G", stops=("HI", "EF"))) + example(_example("", times=3)),
)
def stop_cuts_earliest(group: Group, context: CheckContext) -> Findings:
    """Of the stop sequences that occur in the text, the first match ends it, and nothing before is lost.

    Text beyond the first match was to be dropped; text missing before it is an answer cut short.

    Fix: match over token boundaries, in the whole text, and keep everything in front of the first match.
    """
    for cut in cuts(group, context):
        if isinstance(cut, Inconclusive):
            yield cut
            continue
        match = cut.matches[0] if cut.matches else Match(len(cut.whole), len(cut.whole), "")
        if cut.made or _leaks(cut):
            yield Satisfied(cut.at)
        elif cut.matches and cut.text.startswith(cut.whole[: match.end]):
            later = _honoured(cut)
            if later is None:  # the row on what a text holds of its stop sequences tells of that
                yield Inconclusive(f"the text goes on after {show(match.stop)}: no stop sequence cut it")
                continue
            told = f"the text ends at {show(later)}, though {show(match.stop)} came first: {show(cut.text)}"
            yield Violation(f"{told}; expected {show(cut.whole[: match.start])}", cut.at, cut.case)
        else:
            yield _doubted(group, context, cut, match)


def _honoured(cut: Cut) -> str | None:
    """The stop sequence at whose later match the text ends; None where it is as if there were none."""
    cut_short = len(cut.text) < len(cut.whole) or (cut.finish == cut.stopped != cut.whole_finish)
    if not cut_short or not cut.whole.startswith(cut.text):
        return None
    for stop in cut.stops:
        near = cut.whole[max(0, len(cut.text) - len(stop)) : len(cut.text) + len(stop)]
        if stop in near:
            return stop
    return None


def _doubted(group: Group, context: CheckContext, cut: Cut, match: Match) -> Finding:
    """The text is not the beginning of the one without the sequence: an error, or another draw."""
    index = int(cut.at.rpartition(" ")[2])
    wholes = [x.choices[index].text for x in members(group, "without") if index in x.choices]
    replies = [x for x in members(group, "with") if index in x.choices]
    if not constant(wholes) or not all(context.request(x).greedy for x in replies):
        return Inconclusive("the target is not deterministic: the text differs between replies to one request")
    expected = cut.whole[: match.start]
    kept = {cut.whole[:place] for place in range(match.start, match.end + 1)}
    texts = [generated_text(context.request(x), x.choices[index]) or "" for x in replies]
    texts = [expected if text in kept else text for text in texts]
    finding = compare_values(
        [expected] * len(wholes), texts, "the text", ("without, cut", "with"), at=cut.at, case=cut.case
    )
    if isinstance(finding, Satisfied):
        return Inconclusive("the cut came at the match in other replies")
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
    """No beginning of a stop sequence is left at the end of the text.

    A stream that sends the first token of a stop sequence cannot take it back: users see half a delimiter.

    Fix: hold back text while its end is the beginning of a stop sequence.
    """
    for cut in cuts(group, context):
        if isinstance(cut, Inconclusive):
            yield cut
            continue
        left = _leaks(cut)
        if left:
            stop = next(stop for stop in cut.stops if left in stop)
            told = f"the text ends with {show(left)}, a part of {show(stop)}"
            yield Violation(f"{told}; expected all of the stop sequence or nothing", cut.at, cut.case)
        elif cut.made:
            yield Satisfied(cut.at)


def _leaks(cut: Cut) -> str:
    """The part of a stop sequence that the text ends with, where it ended because of it."""
    if not cut.whole.startswith(cut.text):
        return ""
    if any(len(cut.text) in {match.start, match.end} for match in cut.matches):
        return ""
    for match in cut.matches:
        if match.start < len(cut.text) < match.end:
            return cut.text[match.start :]
    if cut.made or cut.finish != cut.stopped or len(cut.text) == len(cut.whole):
        return ""
    for stop in cut.stops:  # it stopped where only the beginning of the sequence stands
        for size in range(len(stop) - 1, 1, -1):
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
    """Where a stop sequence cut the text, it is left out of it or kept in it as the provider promises.

    A client that adds the delimiter back, or strips it, is right for one of the two and wrong for the other.

    Fix: cut before the match to leave it out, behind the match to keep it.
    """
    rule = context.get("text", "either")
    for cut in cuts(group, context):
        if isinstance(cut, Inconclusive):
            yield cut
            continue
        match = cut.made
        if match is None or match.start < len(cut.text) < match.end:
            continue  # not cut here, or in the middle: rows of their own
        kept = "included" if len(cut.text) >= match.end else "excluded"
        told = f"the stop sequence {show(match.stop)} is {kept} in {show(cut.text)}"
        yield attribute_to(expect(rule in {kept, "either"}, told, f"{rule}", cut.at), cut.case)


@check(
    "stop",
    Scope.GROUP,
    group="cut",
    good=lambda: example(_example("D"), reason="stop"),
    bad=lambda: example(_example("D", finish="length"), reason="stop"),
)
def stop_finishes_with_stop(group: Group, context: CheckContext) -> Findings:
    """A text that a stop sequence ended has the finish_reason `stop`.

    With `length` a client asks for the continuation of a text that was complete.

    Fix: set the reason where the match is found, before the token limit is looked at.
    """
    reason = context.get("reason", context.stop)
    for cut in cuts(group, context):
        if isinstance(cut, Inconclusive):
            yield cut
            continue
        match = cut.made
        if match is None or (match.end == len(cut.whole) and cut.whole_finish != reason):
            continue  # not cut, or cut where the limit ended the text as well
        told = f"finish_reason is {show(cut.finish)} after a cut"
        yield attribute_to(expect(cut.finish == reason, told, show(reason), cut.at), cut.case)


@check(
    "stop",
    Scope.GROUP,
    group="never",
    good=lambda: example(_unmatched(" 4, 5")),
    bad=lambda: example(_unmatched(" 4,", times=3)),
)
def stop_that_never_matches(group: Group, context: CheckContext) -> Findings:
    """A parameter that has no business with the text, such as a stop sequence that never occurs, leaves it unchanged.

    Callers send the same stop list with every prompt; one that shortens other texts truncates at random.

    Fix: act on a stop sequence only when all of it has been generated.
    """
    if not context.get("parameter") or group.key.split(" ")[0] == context["parameter"]:
        yield from unchanged(group, ROLES, context)


def _unmatched(text: str, times: int = 1) -> Group:
    whole = plain(completion(choice()), {"temperature": 0})
    other = plain(completion(choice(text)), {"temperature": 0, "stop": "QQQ"})
    return Group("never", "stop", {"without": (whole,) * times, "with": (other,) * times})
