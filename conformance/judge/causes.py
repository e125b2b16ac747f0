"""Broken requirements → the few causes behind them: what breaks together is shown as one, with its rows beneath.

Pure: the same verdicts and exchanges give the same causes. No cause is known beforehand; each is one of a few kinds
(`cause_kinds.py`), found by what the failing requests have in common and the passing ones lack, by the status of their
replies, and by what changes when a parameter is left out.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from conformance.contract.bounds import top
from conformance.judge.catalogue import Scope, load
from conformance.judge.cause_kinds import KINDS, Harm, Kind, Topic
from conformance.judge.checks.acceptance import accepted, error_instead, failed
from conformance.judge.comparison import comparable, finish_reasons, texts
from conformance.judge.request_settings import Settings, distinguishing, settings_of, words
from conformance.model import BROKEN, Contract, Credential, Level, Outcome, Validity, Verdict
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING, dumps
from conformance.model.request_view import RequestView

WITHIN: Final = 0.8
"""Of the failures of one row: from here on, another row that is broken on the same replies explains it."""
OF_SETTINGS: Final = 0.7
"""What the same settings count as, against the same replies: they may break two promises for two reasons."""
BESIDE: Final = 0.4
"""Of the replies that keep a promise: broken in more of them, another row is no explanation of its failures."""
FEWEST: Final = 2
"""Streams that fail, at least, before streaming counts as not offered: one may fail for what else it has."""
ALIKE: Final = 5
"""Different requests with one body, at least, before it counts as the same whatever is asked."""
COMMON: Final = 0.5
"""Of all requests: a member that more of them have is no subject of a promise, but a habit of the plan."""
MOST_NAMED: Final = 3
"""Parameters in the name of a cause; of more, their number is named."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why requirements are broken: a kind, named after what it concerns, with the requirements that break with it.

    `rows` are the ids of its broken requirements, the one that shows it best first; `blocked` those that cannot be
    judged because of it. `observed` and `expected` are empty where the evidence of the first row says it. `matrix` has
    parameter, rule and outcome of each row on validation.
    """

    id: str
    kind: str
    name: str
    level: Level
    harm: Harm
    means: str
    rows: tuple[str, ...]
    blocked: tuple[str, ...] = ()
    observed: str = ""
    expected: str = ""
    broken: int = 0
    examined: int = 0
    matrix: tuple[tuple[str, str, str], ...] = ()


@dataclass(frozen=True)
class _Row:
    """A broken requirement, with the exchanges that show it broken."""

    verdict: Verdict
    topic: Topic
    failing: tuple[Exchange, ...]
    cases: frozenset[str]

    @property
    def id(self) -> str:
        return self.verdict.requirement.id

    @property
    def group(self) -> str:
        check = load().get(self.verdict.requirement.check)
        return check.group if check else ""

    @property
    def scope(self) -> Scope | None:
        check = load().get(self.verdict.requirement.check)
        return check.scope if check else None

    @property
    def area(self) -> str:
        check = load().get(self.verdict.requirement.check)
        return check.area if check else ""

    @property
    def parameter(self) -> str:
        """The parameter that the requirement names; empty where it names none."""
        return str(self.verdict.requirement.params.get("parameter") or "")

    @property
    def rule(self) -> str:
        return str(self.verdict.requirement.params.get("keyword") or self.id.rpartition(".")[2])

    def mostly(self, holds: Callable[[Exchange], bool]) -> bool:
        """Whether this holds of nearly all exchanges that show the requirement broken."""
        return bool(self.failing) and sum(map(holds, self.failing)) >= WITHIN * len(self.failing)


@dataclass
class _Draft:
    """A cause in the making: its first row shows it best; `affects` says which exchanges it spoils besides."""

    kind: str
    rows: list[_Row]
    subject: str = ""
    about: str = ""
    where: tuple[str, ...] = ()
    observed: str = ""
    expected: str = ""
    counted: tuple[int, int] = (0, 0)
    affects: Callable[[Exchange], bool] = lambda _: False

    @property
    def key(self) -> str:
        """The same in every run with this cause: it has no counts in it."""
        return ".".join((self.kind, *filter(None, [self.about]), *self.where))


def causes(contract: Contract, verdicts: Iterable[Verdict], exchanges: Iterable[Exchange]) -> tuple[Cause, ...]:
    """The causes of all broken requirements, the most harmful first; each requirement belongs to one."""
    listed = tuple(verdicts)
    traffic = _Sent(contract, {x.case.id: x for x in exchanges})
    rows = [traffic.row(verdict) for verdict in listed if verdict.outcome in BROKEN]
    drafts: list[_Draft] = []
    for find in _COLLECTIVE:
        taken = {row.id for draft in drafts for row in draft.rows}
        drafts += find([row for row in rows if row.id not in taken], traffic)
    taken = {row.id for draft in drafts for row in draft.rows}
    drafts += _by_topic([row for row in rows if row.id not in taken], drafts, traffic)
    merged = sorted(_merged(drafts), key=_urgency)
    blocked = _blocked(merged, [verdict for verdict in listed if verdict.outcome is Outcome.INCONCLUSIVE], traffic)
    return tuple(_finished(draft, blocked.get(draft.key, ())) for draft in merged)


_HABITS: Final = frozenset({"sampled", "one", "usage", "non-ascii", "plain"})
"""Settings that say little: many requests have them for reasons of their own."""


@dataclass(frozen=True)
class _Sent:
    """The exchanges of a run, with what is asked of them again and again."""

    contract: Contract
    exchanges: Mapping[str, Exchange]
    _known: dict[str, Settings] = field(default_factory=dict)

    def row(self, verdict: Verdict) -> _Row:
        shown = [names for names in verdict.broke if names and names[0] in self.exchanges]
        shown = shown or [(one.case,) for one in verdict.evidence if one.case in self.exchanges]
        failing = tuple(self.exchanges[names[0]] for names in shown)
        return _Row(verdict, _topic(verdict), failing, frozenset(name for names in shown for name in names))

    def settings(self, case: str) -> Settings:
        if case not in self._known:
            self._known[case] = settings_of(self.exchanges[case], self.contract)
        return self._known[case]

    def where(self, rows: Sequence[_Row]) -> tuple[str, ...]:
        """What the requests of all failures have, and those that kept the same promises lack."""
        failing = {x.case.content: self.settings(x.case.id) for row in rows for x in row.failing}
        kept = (names[-1] for row in rows for names in row.verdict.kept)
        passing = {self.settings(name) for name in kept if name in self.exchanges}
        return distinguishing(list(failing.values()), passing)

    def alone(self, row: _Row) -> Settings:
        """The settings of all failures of a row, if some request has these and no others; else none."""
        each = {self.settings(x.case.id) - _HABITS for x in row.failing}
        common = frozenset[str]().union(*each).intersection(*each)
        return common if common in each else frozenset()

    @cached_property
    def ordinary(self) -> tuple[Exchange, ...]:
        """The exchanges of requests that any target should answer with text."""
        return tuple(
            x
            for x in self.exchanges.values()
            if x.case.validity is Validity.VALID
            and x.case.credential is Credential.KEY
            and not x.case.hostile
            and x.case.hang_up_after is None
            and isinstance(x.case.body, Mapping)
        )

    @cached_property
    def habitual(self) -> frozenset[str]:
        """The members that most requests have."""
        bodies = [x.case.body for x in self.ordinary]
        counts = Counter(name for body in bodies for name in body)
        return frozenset(name for name, count in counts.items() if count > COMMON * len(bodies))

    @cached_property
    def by_body(self) -> Mapping[str, tuple[Exchange, ...]]:
        """The replies that can be compared, by the body of their request without what decides on the channel only."""
        found: dict[str, list[Exchange]] = defaultdict(list)
        for x in self.ordinary:
            if comparable(x):
                found[_rest(x.case.body, "")].append(x)
        return {key: tuple(replies) for key, replies in found.items()}

    def effect(self, parameter: str, failing: Iterable[Exchange]) -> bool | None:
        """Whether leaving the parameter out changes the reply mostly; None where no such request was sent."""
        pairs = [
            (x, other)
            for x in failing
            if comparable(x) and isinstance(x.case.body, Mapping) and parameter in x.case.body
            for other in self.by_body.get(_rest(x.case.body, parameter), ())
        ]
        if not pairs:
            return None
        same = sum((texts(x), finish_reasons(x)) == (texts(other), finish_reasons(other)) for x, other in pairs)
        return same < WITHIN * len(pairs)


_CHANNEL: Final = frozenset({"stream", "stream_options"})
"""Members that decide on the channel only; a cause is confined to a channel, never about one."""


def _rest(body: Mapping[str, Any], parameter: str) -> str:
    """A body without a parameter, and without what decides on the channel only."""
    return dumps({name: body[name] for name in sorted(body) if name not in {parameter, *_CHANNEL}})


_TOPICS: Final[Mapping[str, Topic]] = {
    "robustness": Topic.ANSWER, "limits": Topic.ANSWER, "framing": Topic.FRAMING, "schema": Topic.IDENTITY,
    "stream": Topic.IDENTITY, "choices": Topic.CHOICES, "echo": Topic.TEXT, "stop": Topic.TEXT, "effects": Topic.TEXT,
    "unicode": Topic.TEXT, "concurrency": Topic.TEXT, "tokens": Topic.LIMIT, "finish": Topic.FINISH,
    "usage": Topic.COUNTS, "logprobs": Topic.LOGPROBS, "relations": Topic.RELATION, "errors": Topic.ERRORS,
    "headers": Topic.HEADERS,
}  # fmt: skip
"""The topic of a check, by its area."""
_OTHER_TOPICS: Final[Mapping[str, Topic]] = {
    "deltas_are_not_cumulative": Topic.TEXT, "no_text_after_finish": Topic.TEXT, "twin_text_agrees": Topic.TEXT,
    "nothing_is_left_behind": Topic.TEXT, "chunk_has_choices": Topic.CHOICES, "twin_choices_agree": Topic.CHOICES,
    "batch_order_holds": Topic.CHOICES, "completion_tokens_within_limit": Topic.LIMIT,
    "stop_finishes_with_stop": Topic.FINISH, "twin_finish_agrees": Topic.FINISH,
    "cut_text_finishes_with_length": Topic.FINISH, "batch_usage_is_the_sum": Topic.COUNTS,
    "twin_usage_agrees": Topic.COUNTS, "twin_logprobs_agree": Topic.LOGPROBS,
    "filter_bounds_the_choice": Topic.RELATION, "logprobs_count_the_tokens": Topic.RELATION,
}  # fmt: skip
"""The topic of a check that is another than that of its area."""
_FIELDS: Final = frozenset({"plain_field_conforms", "chunk_field_conforms"})


def _topic(verdict: Verdict) -> Topic:
    name = verdict.requirement.check
    if name in _FIELDS:
        return Topic.MEMBER
    if name == "error_field_conforms":
        return Topic.ERRORS
    check = load().get(name)
    return _OTHER_TOPICS.get(name) or _TOPICS.get(check.area if check else "", Topic.RELATION)


# Causes that many requirements share, in the order in which they are looked for.


def _not_streamed(rows: Sequence[_Row], sent: _Sent) -> Iterator[_Draft]:
    streams = [x for x in sent.ordinary if "streamed" in sent.settings(x.case.id)]
    offered = any(x.successful and x.streamed and x.messages for x in streams)
    plain = any(accepted(x) and "plain" in sent.settings(x.case.id) for x in sent.ordinary)
    if len(streams) < FEWEST or offered or not plain:
        return
    # invalid requests too: what refuses all streams does not come to look at what they ask for
    ids = {case for case in sent.exchanges if "streamed" in sent.settings(case)}
    taken = [row for row in rows if row.mostly(lambda x: x.case.id in ids)]
    reply, count = Counter(map(_described, streams)).most_common(1)[0]
    yield _Draft(
        "not-streamed",
        sorted(taken, key=lambda row: row.parameter != "stream"),
        observed=f"{reply} in {count} of {len(streams)} streams",
        expected="an event stream",
        counted=(len(streams), len(streams)),
        affects=lambda x: x.case.id in ids,
    )


def _described(x: Exchange) -> str:
    """What kind of reply this is, without its details."""
    if x.status is None:
        return "no response"
    return f"HTTP {x.status}" + (f" with {x.media_type or 'no content type'}" if x.successful else "")


_ABOUT_CONTENT: Final = frozenset(Topic) - {Topic.FRAMING, Topic.MEMBER, Topic.ERRORS, Topic.HEADERS}


def _same_body(rows: Sequence[_Row], sent: _Sent) -> Iterator[_Draft]:
    replies = [x for x in sent.ordinary if comparable(x) and x.choices]
    different = {dumps(x.case.body.get("prompt")) for x in replies}
    contents = {tuple(texts(x).items()) for x in replies}
    if len(different) < ALIKE or len(contents) != 1:
        return
    ids = {x.case.id for x in replies}
    taken = [row for row in rows if row.topic in _ABOUT_CONTENT and row.mostly(lambda x: x.case.id in ids)]
    yield _Draft(
        "same-body",
        taken,
        observed=f"{len(replies)} replies to {len(different)} different prompts have the same text",
        expected="a text of its own for each",
        counted=(len(replies), len(replies)),
        affects=lambda x: x.case.id in ids,
    )


def _server_error(x: Exchange) -> bool:
    return failed(x)


def _server_errors(rows: Sequence[_Row], sent: _Sent) -> Iterator[_Draft]:
    """Rows whose requests got a 5xx: of invalid requests, of valid ones, and of what is no JSON object at all."""
    failing = [row for row in rows if row.mostly(_server_error)]
    named = [row for row in failing if row.topic is Topic.ANSWER and row.group]
    collective = [row for row in failing if row not in named]
    for invalid in (True, False):
        members = [row for row in named if _invalid(row.failing[0]) is invalid]
        others = [row for row in collective if (sum(map(_invalid, row.failing)) * 2 > len(row.failing)) is invalid]
        parts = _by_where_and_parameter([*members, *others], sent) if not invalid else [[*members, *others]]
        for part in parts:
            if part:
                yield _of_server_errors(part, sent, invalid=invalid)


def _of_server_errors(rows: list[_Row], sent: _Sent, *, invalid: bool) -> _Draft:
    replies = {x.case.id: x for row in rows for x in row.failing if failed(x)}
    statuses = Counter(str(x.status) for x in replies.values())
    status = statuses.most_common(1)[0][0] if len(statuses) == 1 else "5xx"
    where = sent.where(rows)
    if not where:
        names = {top(row.parameter) for row in rows if row.parameter}
        where = tuple(names) if len(names) == 1 else ()
    ids = set(replies)
    hostile = all(x.case.hostile for x in replies.values())
    return _Draft(
        "adversarial-5xx" if hostile else "validation-5xx" if invalid else "server-error",
        rows,
        subject=status,
        where=where,
        affects=lambda x: x.case.id in ids or (failed(x) and _invalid(x) is invalid),
    )


def _by_where_and_parameter(rows: Sequence[_Row], sent: _Sent) -> list[list[_Row]]:
    """Rows that share a failing request, together."""
    parts: list[list[_Row]] = []
    for row in sorted(rows, key=lambda row: -len(row.cases)):
        near = next((part for part in parts if any(row.cases & other.cases for other in part)), None)
        if near is None:
            parts.append([row])
        else:
            near.append(row)
    return parts


def _invalid(x: Exchange) -> bool:
    return x.case.validity is Validity.INVALID or not isinstance(x.case.body, Mapping)


def _credentials(rows: Sequence[_Row], sent: _Sent) -> Iterator[_Draft]:
    members = [row for row in rows if row.group and row.mostly(lambda x: x.case.credential is not Credential.KEY)]
    let_in = [row for row in members if row.mostly(lambda x: x.case.credential.refused and accepted(x))]
    open_to_all = any(x.case.credential is Credential.NONE for row in let_in for x in row.failing)
    any_key = any(x.case.credential is Credential.WRONG for row in let_in for x in row.failing)
    if let_in:
        kind = "no-authentication" if any_key else "no-key"
        yield _Draft(kind if open_to_all else "credential-accepted", let_in)
    shut_out = [row for row in members if row.mostly(lambda x: not x.case.credential.refused)]
    if shut_out:
        yield _Draft("credential-refused", shut_out)
    rest = [row for row in members if row not in let_in and row not in shut_out]
    if rest:
        yield _Draft("credential-status", rest)


_REFUSE: Final = frozenset({"refuse", "drawn-invalid"})
_ACCEPT: Final = frozenset({"accept", "drawn", "twin"})


def _leniency(rows: Sequence[_Row], sent: _Sent) -> Iterator[_Draft]:
    members = _refusing(rows)
    wrong_status = [row for row in members if not row.mostly(lambda x: x.successful)]
    lenient = [row for row in members if row not in wrong_status]
    malformed = [row for row in lenient if not _parameters(row) and row.group == "refuse"]
    valued = [row for row in lenient if row not in malformed]
    if wrong_status:
        yield _Draft("wrong-status", wrong_status)
    if malformed:
        yield _Draft("malformed", malformed)
    if valued:
        where = sent.where(valued)
        where = () if any(name == top(row.parameter) for row in valued for name in where) else where
        matrix = [(name, row.rule) for row in valued for name in _parameters(row)]
        names = list(dict.fromkeys(name for name, _ in matrix))
        coerced = all(rule == "coercion" for _, rule in matrix)
        subject = _named(names, "values") + (" is" if len(names) == 1 else " are")
        count = sum(row.verdict.violations for row in valued), sum(row.verdict.examined for row in valued)
        yield _Draft(
            "coerced" if coerced else "unvalidated",
            sorted(valued, key=lambda row: (not row.parameter, -row.verdict.violations)),
            subject=subject,
            where=where,
            observed=f"{count[0]} of {count[1]} wrong values of {_named(names, 'parameters')} were accepted"
            if len(valued) > 1
            else "",
            expected="a 4xx that says why",
            counted=count,
        )


def _parameters(row: _Row) -> list[str]:
    """The parameters that a row on acceptance or refusal is broken for: its own, or those that its groups try."""
    if row.parameter:
        return [row.parameter]
    if row.group == "refuse":  # a rule on several members is named after the first of them
        area, _, rest = row.id.partition(".")
        return [rest.rpartition(".")[0]] if area == "request" else []
    keys = (
        part.key.split(" ")
        for x in row.failing
        for part in x.case.groups
        if part.kind == row.group and part.key.partition(" ")[0] == row.id
    )
    return sorted({words[1] for words in keys if len(words) > 1 and not words[1].isdigit()})


def _named(names: Sequence[str], noun: str) -> str:
    """A few names in a sentence; of many, only how many there are."""
    if len(names) > MOST_NAMED:
        return f"{noun} of {len(names)} parameters" if noun != "parameters" else f"{len(names)} parameters"
    return " and ".join(filter(None, [", ".join(f"`{name}`" for name in names[:-1]), *(f"`{n}`" for n in names[-1:])]))


_PARSED_APART: Final = frozenset({"streamed", "plain", "batch", "ids"})
"""Settings for which servers parse a request by other code. A refused request has others by chance."""


def _refusals(rows: Sequence[_Row], sent: _Sent) -> Iterator[_Draft]:
    """Valid requests that are refused: by parameter, then what is refused because of these."""
    among = [row for row in rows if row.topic is Topic.ANSWER and (row.group in _ACCEPT or _combines(row))]
    members = [row for row in among if not row.mostly(lambda x: x.successful)]
    null = [row for row in members if row.rule == "null" and row.parameter]
    single = [row for row in members if row.parameter and row not in null and row.group == "accept"]
    forms = [row for row in members if row.group == "accept" and not row.parameter]
    rest = [row for row in members if row not in null and row not in single and row not in forms]
    drafts = []
    for row in single:
        name = top(row.parameter)
        where = sent.where([row])
        drafts.append(
            _Draft(
                "refused",
                [row],
                subject=f"`{row.parameter}`",
                about=row.parameter,
                where=tuple(setting for setting in where if setting in _PARSED_APART),
                affects=_refuses(name),
            )
        )
    if null:
        names = [row.parameter for row in null]
        drafts.append(_Draft("null-refused", null, subject=_named(names, "parameters"), affects=_refuses_null(names)))
    if forms:
        names = [row.id.rpartition(".")[2].replace("-", " ") for row in forms]
        drafts.append(_Draft("form-refused", forms, subject=", ".join(names)))
    for row in rest:
        near = next((draft for draft in drafts if row.mostly(draft.affects)), None)
        if near is None and (name := _only_member(row, sent)):
            near = _Draft("value-refused", [], subject=f"`{name}`", about=name, affects=_refuses(name))
            drafts.append(near)
        if near is None:
            near = next((draft for draft in drafts if draft.kind == "together-refused"), None)
        if near is None:
            where = sent.where([row])
            affects = _refused_with(frozenset(where), sent)
            drafts.append(_Draft("together-refused", [row], where=where, affects=affects))
        else:
            near.rows.append(row)
    yield from drafts


def _only_member(row: _Row, sent: _Sent) -> str:
    """The only member that all failing requests have beyond the usual ones; empty where there are more."""
    common = set.intersection(*(set(_members(x)) - sent.habitual for x in row.failing)) if row.failing else set()
    return next(iter(common)) if len(common) == 1 else ""


def _refuses_null(names: Collection[str]) -> Callable[[Exchange], bool]:
    def refused_for_it(x: Exchange) -> bool:
        body = x.case.body
        return x.refused and isinstance(body, Mapping) and any(body.get(name, MISSING) is None for name in names)

    return refused_for_it


def _combines(row: _Row) -> bool:
    return row.area == "limits" and not row.group


def _refuses(name: str) -> Callable[[Exchange], bool]:
    return lambda x: x.refused and isinstance(x.case.body, Mapping) and name in x.case.body


def _refused_with(settings: Settings, sent: _Sent) -> Callable[[Exchange], bool]:
    return lambda x: x.refused and not _invalid(x) and settings <= sent.settings(x.case.id)


def _unfinished(rows: Sequence[_Row], sent: _Sent) -> Iterator[_Draft]:
    """Rows on replies that do not come, or that break off."""
    for row in rows:
        if row.area != "robustness" and row.group != "burst":
            continue
        if row.topic is Topic.TEXT:
            continue
        if row.verdict.requirement.check == "burst_does_not_mix":
            yield _Draft("mixed", [row])
        elif row.group == "burst":
            yield _Draft("cut-beside-others", [row], affects=_broken_off)
        elif row.group or row.mostly(lambda x: x.status is None):
            yield _Draft("no-answer", [row], affects=lambda x: x.status is None)
        else:
            where = sent.where([row])
            yield _Draft("cut", [row], where=where, affects=_broken_off)


def _broken_off(x: Exchange) -> bool:
    return x.status is None or x.ending.value not in {"complete", "abandoned"}


def _error_as_success(x: Exchange) -> bool:
    return x.successful and (error_instead(x) or x.error is not MISSING)


def _refusing(rows: Sequence[_Row]) -> list[_Row]:
    """The rows that ask for a refusal."""
    return [row for row in rows if row.topic is Topic.ANSWER and row.group in _REFUSE]


def _errors_as_success(rows: Sequence[_Row], sent: _Sent) -> Iterator[_Draft]:
    members = [row for row in rows if row.topic is Topic.ERRORS]
    as_success = [row for row in (*members, *_refusing(rows)) if row.mostly(_error_as_success)]
    if any(row in members for row in as_success):
        yield _Draft("error-as-success", as_success, where=sent.where(as_success))


def _errors(rows: Sequence[_Row], sent: _Sent) -> Iterator[_Draft]:
    members = [row for row in rows if row.topic is Topic.ERRORS]
    if members:
        yield _Draft("errors", members, where=sent.where(members))
    headers = [row for row in rows if row.topic is Topic.HEADERS]
    if headers:
        yield _Draft("headers", headers)


_COLLECTIVE: Final[tuple[Callable[[Sequence[_Row], _Sent], Iterable[_Draft]], ...]] = (
    _errors_as_success, _credentials, _not_streamed, _same_body, _server_errors, _errors, _leniency, _refusals,
    _unfinished,
)  # fmt: skip


# The rest: rows on the content of replies. One whose failures are those of another, of which it is read, is its effect.


def _by_topic(rows: Sequence[_Row], known: Sequence[_Draft], sent: _Sent) -> list[_Draft]:
    drafts: list[_Draft] = []
    for row in sorted(rows, key=lambda row: _depth(row, sent)):
        fits = [(_explains(draft, row, sent), draft) for draft in (*known, *drafts) if draft.rows]
        best = max(fits, key=lambda fit: fit[0], default=None)
        if best is not None and best[0] > 0:
            best[1].rows.append(row)
        else:
            drafts.append(_Draft("", [row]))
    for draft in drafts:
        _describe(draft, sent)
    return _joined(drafts, sent)


def _joined(drafts: Sequence[_Draft], sent: _Sent) -> list[_Draft]:
    """The drafts, those of one topic and parameter as one where one setting explains the failures of both."""
    joined: list[_Draft] = []
    for draft in drafts:
        near = next((other for other in joined if _joins(other, draft, sent)), None)
        if near is None:
            joined.append(draft)
        else:
            near.rows += draft.rows
            near.where = sent.where(near.rows[:1]) if near.rows[0].topic is Topic.CHOICES else near.where
    return joined


def _joins(draft: _Draft, other: _Draft, sent: _Sent) -> bool:
    first, second = draft.rows[0], other.rows[0]
    if first.topic is not second.topic or first.topic not in _CONTENT or draft.about != other.about:
        return False
    return first.topic is Topic.CHOICES or bool(sent.where([first, second]))


_FIRST: Final = (Topic.FRAMING, Topic.MEMBER, Topic.IDENTITY)


def _depth(row: _Row, sent: _Sent) -> tuple[int, int, int, int, str]:
    """What is looked at first: what others are read from, what one setting alone shows, what is broken most often."""
    order = list(Topic)
    tier = _FIRST.index(row.topic) if row.topic in _FIRST else len(_FIRST) + (row.topic is Topic.RELATION)
    compared = bool(row.group) and row.topic in {Topic.CHOICES, Topic.TEXT} and len(sent.alone(row)) == 1
    return tier, -len(sent.exchanges) if compared else -len(row.cases), order.index(row.topic), _level(row), row.id


def _level(row: _Row) -> int:
    return list(Level).index(row.verdict.requirement.level)


_CONTENT: Final = frozenset({
    Topic.CHOICES, Topic.TEXT, Topic.LIMIT, Topic.FINISH, Topic.COUNTS, Topic.LOGPROBS, Topic.RELATION,
})  # fmt: skip
_SPOILS: Final[Mapping[Topic, frozenset[Topic]]] = {
    Topic.FRAMING: frozenset(Topic) - {Topic.ERRORS, Topic.HEADERS},
    Topic.IDENTITY: frozenset({Topic.IDENTITY}),
    Topic.CHOICES: _CONTENT,
    Topic.TEXT: _CONTENT - {Topic.CHOICES},
    Topic.LIMIT: frozenset({Topic.LIMIT, Topic.FINISH, Topic.COUNTS, Topic.RELATION}),
    Topic.FINISH: frozenset({Topic.FINISH, Topic.LIMIT, Topic.RELATION}),
    Topic.COUNTS: frozenset({Topic.COUNTS, Topic.LIMIT, Topic.RELATION}),
    Topic.LOGPROBS: frozenset({Topic.LOGPROBS, Topic.RELATION}),
    Topic.RELATION: frozenset({Topic.RELATION}),
}  # fmt: skip
"""What can be wrong in a reply because of a topic that is."""


def _explains(draft: _Draft, row: _Row, sent: _Sent) -> float:
    """How well the first row of a cause explains another row: 0 not at all, 1 where both fail on the same replies."""
    first = draft.rows[0]
    alike = [other for other in draft.rows if other.topic is first.topic]
    if not any(row.topic in _spoilt(other) for other in alike):
        return 0.0
    if first.topic is Topic.MEMBER and row.topic is Topic.MEMBER:
        if any(_same_member(other, row) for other in alike):
            return 1.0
        if first.rule != row.rule:
            return 0.0
    overlap = _overlap({name for other in alike for name in other.cases}, row)
    return max(overlap, OF_SETTINGS * _has_settings(first, row, sent)) if first.topic in _CONTENT else overlap


def _overlap(cases: Collection[str], row: _Row) -> float:
    """The share of a row's failures that are on these cases, less that of what it keeps."""
    failing = [not frozenset(names).isdisjoint(cases) for names in row.verdict.broke]
    if not failing or sum(failing) < WITHIN * len(failing):
        return 0.0
    kept = [names[-1] in cases for names in row.verdict.kept]
    beside = sum(kept) / len(kept) if kept else 0.0
    return sum(failing) / len(failing) - beside if beside <= BESIDE else 0.0


def _has_settings(first: _Row, row: _Row, sent: _Sent) -> bool:
    """Whether a row is broken just where requests have the settings with which alone another is broken."""
    common = sent.alone(first)
    kept = (names[-1] for names in row.verdict.kept)
    return (
        bool(common)
        and row.mostly(lambda x: common <= sent.settings(x.case.id))
        and not any(common <= sent.settings(name) for name in kept if name in sent.exchanges)
    )


def _spoilt(first: _Row) -> frozenset[Topic]:
    """What can be wrong in a reply because of this row."""
    if first.topic is Topic.CHOICES and not first.group and not any(map(_mixed_up, first.failing)):
        return _CONTENT - {Topic.TEXT, Topic.LOGPROBS}  # choices that are missing do not change the others
    if first.topic is not Topic.MEMBER:
        return _SPOILS.get(first.topic, frozenset())
    path = str(first.verdict.requirement.params["path"])
    if ".logprobs" in path:
        return frozenset({Topic.MEMBER, Topic.LOGPROBS, Topic.RELATION})
    if path.startswith("choices"):
        return _CONTENT | {Topic.MEMBER, Topic.ANSWER}
    if path in {"usage", "usage.completion_tokens", "usage.prompt_tokens", "usage.total_tokens"}:
        return frozenset({Topic.MEMBER, Topic.COUNTS, Topic.RELATION})
    return frozenset({Topic.MEMBER, Topic.IDENTITY})


def _mixed_up(x: Exchange) -> bool:
    """Whether the parts of several choices are read as one, or none has an index that can be read."""
    finished = (sum(part.finish_reason is not None for part in choice.parts) for choice in x.choices.values())
    return not x.choices or any(number > 1 for number in finished)


def _same_member(first: _Row, row: _Row) -> bool:
    """Whether two rows on members say the same of one member, in replies and in chunks, or of what is inside of it."""
    one, other = first.verdict.requirement.params, row.verdict.requirement.params
    inside = str(other["path"]).startswith(f"{one['path']}.") or str(other["path"]).startswith(f"{one['path']}[")
    return bool(one["path"] == other["path"]) or inside


def _describe(draft: _Draft, sent: _Sent) -> None:
    """Name the kind of a cause by the topic of its first row."""
    first = draft.rows[0]
    draft.where = sent.where(draft.rows[:1])
    match first.topic:
        case Topic.MEMBER:
            draft.kind, draft.subject = "member", _member(draft.rows)
            draft.about = re.sub(
                r"[^A-Za-z0-9_]+", "-", f"{first.rule} {first.verdict.requirement.params['path']}"
            ).strip("-")
        case (
            Topic.FRAMING | Topic.IDENTITY | Topic.CHOICES | Topic.LIMIT | Topic.FINISH | Topic.COUNTS | Topic.LOGPROBS
        ):
            draft.kind = first.topic.value
        case Topic.ANSWER:
            draft.kind = "unanswered"
        case _:
            draft.kind = "text"
    if first.topic is Topic.COUNTS and first.mostly(lambda x: x.successful and x.usage is None):
        draft.kind = "no-usage"
    elif first.topic is Topic.COUNTS and first.scope is Scope.STREAM:
        draft.kind = "usage-chunk"
    if first.topic is Topic.CHOICES and first.mostly(lambda x: _one_for_each_prompt(x, sent.contract)):
        draft.kind, draft.subject, draft.about = "no-effect", "`n`", "n"
        draft.where = tuple(setting for setting in draft.where if setting != "n")
    elif first.area == "logprobs":
        draft.kind = "logprobs"
    elif first.topic in {Topic.CHOICES, Topic.TEXT, Topic.RELATION, Topic.LIMIT} and (name := _subject(first, sent)):
        effect = sent.effect(name, first.failing)
        draft.kind, draft.subject, draft.about = ("no-effect" if effect is False else "misapplied"), f"`{name}`", name
        draft.where = tuple(setting for setting in draft.where if setting != name)


def _one_for_each_prompt(x: Exchange, contract: Contract) -> bool:
    """Whether a reply has one choice for each prompt though the request asks for several."""
    body = x.case.body
    request = RequestView(body if isinstance(body, Mapping) else {}, contract.defaults)
    return request.n > 1 and list(x.choices) == list(range(max(len(request.prompts), 1)))


def _subject(row: _Row, sent: _Sent) -> str:
    """The parameter that a row on content is about: its own, or the only one that all its requests have."""
    if row.parameter:
        return top(row.parameter)
    names = [
        {name for case in subject if case in sent.exchanges for name in _members(sent.exchanges[case])}
        for subject in (*row.verdict.broke, *row.verdict.kept)
    ]
    common = set.intersection(*names) - sent.habitual - _CHANNEL if names else set()
    return row.area if row.area in common else next(iter(common)) if len(common) == 1 else ""


def _members(x: Exchange) -> Collection[str]:
    body = x.case.body
    return [name for name, value in body.items() if value is not None] if isinstance(body, Mapping) else ()


_FAULTS: Final = {"required": "missing", "not_null": "null", "type": "of the wrong type", "enum": "of another value"}


def _member(rows: Sequence[_Row]) -> str:
    """What is wrong with which members, and in which replies."""
    params = [row.verdict.requirement.params for row in rows if row.topic is Topic.MEMBER]
    fault = _FAULTS.get(str(params[0]["keyword"]), "not as documented")
    paths = list(dict.fromkeys(str(one["path"]) for one in params))
    roots = [path for path in paths if not any(path != other and path.startswith(other) for other in paths)]
    channels = {str(one["channel"]) for one in params}
    place = "every chunk" if channels == {"chunk"} else "every reply"
    first = rows[0].verdict
    if first.violations < first.examined:
        place = "chunks" if channels == {"chunk"} else "replies"
    noun = "a member is" if len(roots) == 1 else "members are"
    return f"{noun} {fault} in {place}: {', '.join(f'`{path}`' for path in roots)}"


def _merged(drafts: Sequence[_Draft]) -> list[_Draft]:
    """The drafts, those of one kind, subject and setting as one."""
    by_key: dict[str, _Draft] = {}
    for draft in drafts:
        if not draft.rows:
            continue
        if draft.key in by_key:
            by_key[draft.key].rows += draft.rows
        else:
            by_key[draft.key] = draft
    return list(by_key.values())


def _urgency(draft: _Draft) -> tuple[int, int, int, str]:
    return min(map(_level, draft.rows)), KINDS[draft.kind].harm, -len(draft.rows), draft.key


# What cannot be judged because of a cause.


def _blocked(drafts: Sequence[_Draft], verdicts: Sequence[Verdict], sent: _Sent) -> Mapping[str, tuple[str, ...]]:
    """The requirements without a verdict by the cause that spoils all replies which were expected to show them."""
    found: dict[str, list[str]] = defaultdict(list)
    for verdict in verdicts:
        due = [[sent.exchanges[name] for name in names if name in sent.exchanges] for names in verdict.due]
        for draft in drafts if due else ():
            if all(any(_spoils(draft, x, verdict) for x in subject) for subject in due):
                found[draft.key].append(verdict.requirement.id)
                break
    return {key: tuple(ids) for key, ids in found.items()}


def _spoils(draft: _Draft, x: Exchange, verdict: Verdict) -> bool:
    """Whether a reply shows nothing of a requirement because of a cause: as it has no text, or the wrong one.

    Two replies that differ by chance show nothing either, so relations are spoilt by what leaves no text alone.
    """
    if draft.affects(x):
        return True
    first = draft.rows[0]
    if not any(x.case.id == other.case.id for row in draft.rows for other in row.failing) or _topic(
        verdict
    ) not in _spoilt(first):
        return False
    silent = not any(choice.text for choice in x.choices.values())
    return silent or bool(verdict.repeat) or load()[verdict.requirement.check].scope is not Scope.GROUP


def _finished(draft: _Draft, blocked: tuple[str, ...]) -> Cause:
    kind: Kind = KINDS[draft.kind]
    first = draft.rows[0].verdict
    where = f" {words(draft.where)}" if draft.where else ""
    broken, examined = draft.counted if draft.counted[1] else (first.violations, first.examined)
    return Cause(
        id=draft.key,
        kind=draft.kind,
        name=kind.name.format(subject=draft.subject, where=where),
        level=min((row.verdict.requirement.level for row in draft.rows), key=list(Level).index),
        harm=kind.harm,
        means=kind.means,
        rows=tuple(row.id for row in draft.rows),
        blocked=blocked,
        observed=draft.observed,
        expected=draft.expected if draft.observed else "",
        broken=broken,
        examined=examined,
        matrix=tuple(
            (name, row.rule, row.verdict.outcome.value)
            for row in draft.rows
            if draft.kind in {"unvalidated", "coerced", "validation-5xx"} and row.group in _REFUSE
            for name in _parameters(row)
        ),
    )
