"""A requirement and all exchanges → its verdict. Pure: the same bytes give the same verdict, now and years later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product

from conformance.contract.applicability import applies, expected_of_case
from conformance.judge.catalogue import Check, CheckContext, Scope, load
from conformance.judge.channels import PAIRS, within_one_channel
from conformance.judge.determinism import discounted, nondeterministic_prompts
from conformance.judge.finding_cache import Conclusions, FindingCache, Packed, packed
from conformance.judge.forms import having_form, unseen_forms
from conformance.judge.unrecorded import is_unrecorded
from conformance.model import (
    BUSY,
    Contract,
    Credential,
    Ending,
    Evidence,
    Finding,
    Inconclusive,
    Level,
    Observation,
    Outcome,
    RequestCase,
    Requirement,
    Satisfied,
    Validity,
    Verdict,
    Violation,
)
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import dumps, named_twice
from conformance.model.request_view import RequestView

NEEDS_CONFIRMATION = "needs confirmation: "
MOST_EVIDENCE = 20
MOST_OBSERVATIONS = 100
ALIKE = 2
"""Different requests with the same server error, at least, before one of them counts as confirmed by the others."""
TRYING = frozenset({"accept", "refuse", "observe"})
"""The kinds of groups whose probe tries one value beside its control."""
FAILING_SHARE = 0.5
"""Of the requests of one kind: from here on a server error belongs to the kind. Errors at random stay far below it."""


@dataclass(frozen=True)
class Traffic:
    """All exchanges of a run, arranged once for all requirements.

    `planned` are all cases of the plan, sent or not: a requirement whose cases were never sent is NOT_RUN, no pass.
    `cache` keeps earlier conclusions on the same exchanges under the same contract.
    """

    exchanges: Sequence[Exchange]
    planned: Sequence[RequestCase] = ()
    cache: FindingCache = field(default_factory=FindingCache, repr=False, compare=False)

    @cached_property
    def unsent(self) -> tuple[RequestCase, ...]:
        """The planned cases that have no exchange."""
        sent = {x.case.id for x in self.exchanges}
        return tuple(case for case in self.planned if case.id not in sent)

    @cached_property
    def groups(self) -> Mapping[str, tuple[Group, ...]]:
        """Groups by kind. A repeat of a case has the same roles as the case itself."""
        by_id = {x.case.id: x for x in self.exchanges}
        gathered: dict[tuple[str, str], dict[str, list[Exchange]]] = defaultdict(lambda: defaultdict(list))
        silent = {x.case.id for role in ("without", "again") for x in self.silence.get(role, ())}
        for x in self.exchanges:
            if x.case.id in silent:
                continue
            original = by_id.get(x.case.repeats, x)
            for part in original.case.groups or x.case.groups:
                gathered[part.kind, part.key][part.role].append(x)
        if self.silence:
            gathered["alive", "silence"] |= self.silence
        for name in self.cut_beside_others:  # what a burst shows on purpose, these show by accident
            gathered["burst", name] = {"beside": [by_id[name]], "alone": self._copies[name]}
        kinds: dict[str, list[Group]] = defaultdict(list)
        for (kind, key), roles in gathered.items():
            members = {role: tuple(replies) for role, replies in roles.items()}
            kinds[kind].append(Group(kind, key, members))
        return {kind: tuple(groups) for kind, groups in kinds.items()}

    @cached_property
    def by_group(self) -> Mapping[tuple[str, str], tuple[Conclusions, ...]]:
        """Groups by kind and the first word of their key, a requirement or a parameter; under "" all of that kind."""
        gathered: dict[tuple[str, str], list[Conclusions]] = defaultdict(list)
        for kind, groups in self.groups.items():
            for group in groups:
                known = self.cache.of(group)
                for word in {"", group.key.partition(" ")[0]}:
                    gathered[kind, word].append(known)
        return {name: tuple(conclusions) for name, conclusions in gathered.items()}

    @cached_property
    def alone(self) -> Mapping[str, frozenset[str]]:
        """The values by parameter, as JSON, that were refused in a request that otherwise equals its control.

        A value that was accepted in some other request is not among them.
        """
        refused_values: dict[str, set[str]] = defaultdict(set)
        for group in self.groups.get("accept", ()):
            refused = [x.case.body for role in ("probe", "joint") for x in group.all(role) if x.refused]
            accepted = [x.case.body for x in group.all("control") if x.successful] if refused else []
            for body, control in product(refused, accepted):
                changed = _changed(control, body)
                if len(changed) == 1:
                    refused_values[changed[0]].add(dumps(body[changed[0]]))
        never_accepted = (
            (name, frozenset(values) - self.taken.get(name, frozenset())) for name, values in refused_values.items()
        )
        return {name: values for name, values in never_accepted if values}

    @cached_property
    def taken(self) -> Mapping[str, frozenset[str]]:
        """The values by parameter, as JSON, that were accepted in some request."""
        accepted: dict[str, set[str]] = defaultdict(set)
        for x in self.exchanges:
            if x.successful and isinstance(x.case.body, Mapping):
                for name, value in x.case.body.items():
                    accepted[name].add(dumps(value))
        return {name: frozenset(values) for name, values in accepted.items()}

    @cached_property
    def cut_beside_others(self) -> frozenset[str]:
        """The ids of the cases that broke off beside others and were whole each time they were sent alone.

        None where one broke off alone as well: then something else is the cause. Once sending alone has helped, all is
        sent alone, so that a case which breaks off after that, and is not sent again, did so alone.
        """
        broken_off = [x.case for x in self.exchanges if cut(x) and not x.case.repeats]
        alone = {case.id: self._copies[case.id] for case in broken_off if case.id in self._copies}
        if not all(x.ending is Ending.COMPLETE for copies in alone.values() for x in copies):
            return frozenset()
        order = {x.case.id: index for index, x in enumerate(self.exchanges)}
        helped = min((order[x.case.id] for copies in alone.values() for x in copies), default=len(order))
        alone_too = any(order[case.id] > helped for case in broken_off if case.id not in alone)
        return frozenset() if alone_too else frozenset(alone)

    @cached_property
    def silence(self) -> dict[str, list[Exchange]]:
        """The requests without a response at the end of the run, if some of them had been answered before.

        The roles: the last exchange `before`, those `without` a response, and those sent `again`.
        """
        in_time = sorted(self.exchanges, key=lambda x: x.attempts[0].started_at)
        end = next((index for index, x in enumerate(reversed(in_time)) if not _is_silent(x)), len(in_time))
        before, without = in_time[: len(in_time) - end], in_time[len(in_time) - end :]
        answered = {x.case.id for x in before if x.successful}
        again = [x for x in without if x.case.repeats in answered]
        if not again or not before:
            return {}
        return {"before": before[-1:], "without": [x for x in without if not x.case.repeats], "again": again}

    @cached_property
    def _copies(self) -> Mapping[str, list[Exchange]]:
        """The exchanges that repeat a case, by its id."""
        copies: dict[str, list[Exchange]] = defaultdict(list)
        for x in self.exchanges:
            if x.case.repeats:
                copies[x.case.repeats].append(x)
        return copies

    @cached_property
    def failing(self) -> frozenset[str]:
        """The ids of the cases whose server error needs no repetition, because it belongs to a kind of request.

        A kind is all valid, or all invalid, requests on one channel; or the requests that try one value, or that try
        or break one requirement. Where one 5xx answers several different requests of it, and at least half of them,
        the target fails on that kind; errors at random do not gather there.
        """
        kinds: dict[tuple[object, ...], dict[bytes, list[Exchange]]] = defaultdict(lambda: defaultdict(list))
        for x in self.exchanges:
            if not x.case.hostile and x.status is not None:
                kinds[x.case.validity, _asks_stream(x)][x.case.content].append(x)
                for requirement in {*x.case.breaks, *_tried(x.case)}:
                    kinds[x.case.validity, requirement][x.case.content].append(x)
        confirmed: set[str] = set()
        for requests in kinds.values():
            failed: dict[int, list[Exchange]] = defaultdict(list)
            for replies in requests.values():
                status = replies[0].status or 0
                if status >= 500 and status not in BUSY and all(x.status == status for x in replies):
                    failed[status] += replies
            for replies in failed.values():
                different = len({x.case.content for x in replies})
                if different >= ALIKE and different >= len(requests) * FAILING_SHARE:
                    confirmed.update(x.case.id for x in replies)
        return frozenset(confirmed)

    @cached_property
    def nondeterministic(self) -> frozenset[str]:
        """The non-deterministic prompts, as JSON."""
        return nondeterministic_prompts(self.exchanges)

    @cached_property
    def conclusions(self) -> tuple[Conclusions, ...]:
        """The known conclusions about each exchange."""
        return tuple(map(self.cache.of, self.exchanges))

    @cached_property
    def by_scope(self) -> Mapping[Scope, tuple[Conclusions, ...]]:
        """The exchanges that are in each scope."""
        pairs = tuple(zip(self.exchanges, self.conclusions, strict=True))
        return {scope: tuple(known for x, known in pairs if rule(x)) for scope, rule in _IN_SCOPE.items()}


def _is_silent(x: Exchange) -> bool:
    return x.status is None and x.ending is not Ending.ABANDONED


def cut(x: Exchange) -> bool:
    """Whether the response to an ordinary request broke off, or did not end in time."""
    return x.ending in {Ending.TRUNCATED, Ending.TIMED_OUT} and x.status is not None and not x.case.hostile


def _tried(case: RequestCase) -> set[str]:
    """The requirements on acceptance and refusal that a case tries, and the values that it tries for them."""
    parts = [part for part in case.groups if part.kind in TRYING and part.role in {"probe", "joint"}]
    return {part.key for part in parts} | {part.key.partition(" ")[0] for part in parts if part.role == "probe"}


def _changed(control: object, body: object) -> list[str]:
    """The members of the body that its control has not, or has with another value."""
    if not isinstance(control, Mapping) or not isinstance(body, Mapping):
        return []
    return [name for name, value in body.items() if name not in control or dumps(control[name]) != dumps(value)]


def _judgeable(x: Exchange) -> bool:
    """Whether this is a complete success on a valid or unspecified request."""
    return (
        x.successful
        and x.ending is Ending.COMPLETE
        and x.case.validity is not Validity.INVALID
        and (x.case.credential is Credential.NONE or not x.case.credential.refused)
        and _readable(x.case)
    )


def _readable(case: RequestCase) -> bool:
    """Whether all parsers read the body alike: a JSON object, in which no member is named twice."""
    return isinstance(case.body, Mapping) and not (case.hostile and named_twice(case.content))


def _asks_stream(x: Exchange) -> bool:
    body = x.case.body
    return isinstance(body, Mapping) and body.get("stream") is True


_IN_SCOPE: Mapping[Scope, Callable[[Exchange], bool]] = {
    Scope.ANY: lambda _: True,
    Scope.SUCCESS: _judgeable,
    Scope.PLAIN: lambda x: _judgeable(x) and not _asks_stream(x),
    Scope.STREAM: lambda x: _judgeable(x) and _asks_stream(x),
    Scope.ERROR: lambda x: x.status is not None and x.status >= 400 and x.ending is Ending.COMPLETE,
}


@dataclass
class _Tally:
    """The counted findings of one requirement.

    `counts_observations`: each observation is an occurrence, because a MAY requires nothing else. `violations` include
    those that are not `reproducible`. `unproved` are the reasons of inconclusive findings.
    """

    counts_observations: bool
    examined: int = 0
    exchanges: int = 0
    violations: int = 0
    reproducible: int = 0
    evidence: list[Evidence] = field(default_factory=list)
    unproved: list[str] = field(default_factory=list)
    unconfirmed: list[str] = field(default_factory=list)
    repeat: list[tuple[str, ...]] = field(default_factory=list)
    observations: dict[tuple[str, str], Observation] = field(default_factory=dict)
    broke: dict[tuple[str, ...], None] = field(default_factory=dict)
    kept: list[Exchange | Group] = field(default_factory=list)

    def add(self, subject: Exchange | Group, findings: Iterable[Finding]) -> None:
        """Count the findings on one subject; a violation is attributed to the last of its exchanges."""
        before, broken_before = self.examined, self.violations
        cases = _cases(subject)
        for finding in findings:
            if isinstance(finding, Observation):
                self.examined += self.counts_observations
                if len(self.observations) < MOST_OBSERVATIONS:
                    self.observations.setdefault((finding.subject, finding.value), finding)
            elif isinstance(finding, Inconclusive):
                self.unproved.append(finding.reason)
                if finding.repeat:
                    self.unconfirmed.append(finding.reason)
                    self.repeat.append(finding.cases or tuple(cases))
            else:
                self.examined += finding.count if isinstance(finding, Satisfied) else 1
                if isinstance(finding, Violation):
                    self._add_violation(finding, cases)
        self.exchanges += self.examined > before
        if self.examined > before and self.violations == broken_before:
            self.kept.append(subject)

    def add_satisfied(self, subject: Exchange | Group, count: int) -> None:
        """Count a subject all of whose occurrences, if any, keep the promise."""
        self.examined += count
        self.exchanges += count > 0
        if count:
            self.kept.append(subject)

    def _add_violation(self, violation: Violation, cases: Sequence[str]) -> None:
        case = violation.case or cases[-1]
        self.broke[tuple(dict.fromkeys((case, *cases)))] = None
        self.violations += 1
        self.reproducible += not violation.flaky
        if len(self.evidence) < MOST_EVIDENCE:
            self.evidence.append(Evidence(case=case, at=violation.at, message=violation.message))


def judge(requirement: Requirement, traffic: Traffic, contract: Contract) -> Verdict:
    """The verdict on one requirement, from all exchanges of a run."""
    check = load()[requirement.check]
    context = _context(requirement, check, traffic, contract)
    try:
        tally = _tally(requirement, check, traffic, context)
        decision = _decision(requirement, check, traffic, context, tally)
    except Exception as error:  # noqa: BLE001 - a check must never raise; one that does is a fault of the suite
        return Verdict(requirement, Outcome.ERROR, _fault_of_the_suite(check, error))
    return _verdict(requirement, tally, decision)


def _context(requirement: Requirement, check: Check, traffic: Traffic, contract: Contract) -> CheckContext:
    """What the check may know of the run."""
    context = CheckContext(contract, requirement.params, traffic.cache.views)
    if check.needs_whole_run and (traffic.alone or traffic.failing or traffic.cut_beside_others):
        context = replace(
            context,
            alone=traffic.alone,
            taken=traffic.taken,
            failing=traffic.failing,
            cut_beside_others=traffic.cut_beside_others,
        )
    return context


def _verdict(requirement: Requirement, tally: _Tally, decision: _Decision) -> Verdict:
    return Verdict(
        requirement=requirement,
        outcome=decision.outcome,
        reason=decision.reason,
        examined=tally.examined,
        exchanges=tally.exchanges,
        violations=tally.violations,
        evidence=tuple(tally.evidence),
        observations=tuple(tally.observations.values()),
        incomplete=decision.incomplete,
        repeat=tuple(dict.fromkeys(tally.repeat)),
        broke=tuple(tally.broke),
        kept=tuple(tuple(_cases(subject)) for subject in tally.kept) if tally.violations else (),
        due=decision.due,
    )


def _tally(requirement: Requirement, check: Check, traffic: Traffic, context: CheckContext) -> _Tally:
    tally = _Tally(counts_observations=requirement.level is Level.MAY)
    for known in _subjects(requirement, check, traffic):
        subject = known.subject
        findings = _findings(requirement, check, known, context)
        if isinstance(findings, int):
            tally.add_satisfied(subject, findings)
            continue
        if isinstance(subject, Group):
            pairs = traffic.groups.get(PAIRS, ())
            findings = tuple(within_one_channel(finding, subject, pairs) for finding in findings)
            if traffic.nondeterministic:
                findings = tuple(discounted(finding, subject, traffic.nondeterministic) for finding in findings)
        tally.add(subject, findings)
    return tally


def _findings(requirement: Requirement, check: Check, known: Conclusions, context: CheckContext) -> Packed:
    """The findings on one subject: those of an earlier call, unless they depend on the whole run."""
    of_run = check.needs_whole_run and bool(context.alone or context.failing or context.cut_beside_others)
    findings = None if of_run else known.findings.get(requirement.id)
    if findings is None:
        subject = known.subject
        applicable = isinstance(subject, Group) or (
            not is_unrecorded(requirement, check, subject)
            and (not requirement.when or applies(requirement, context.request(subject)))
        )
        findings = packed(check.function(subject, context) if applicable else ())
        if not of_run:
            known.findings[requirement.id] = findings
    return findings


def _fault_of_the_suite(check: Check, error: Exception) -> str:
    """The reason of an ERROR verdict, with the line of the check that raised."""
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    line = f"{frame.tb_frame.f_code.co_name}:{frame.tb_lineno}" if frame else "?"
    return f"the check {check.name} raised {type(error).__name__}: {error} (in {line}); please report this"


def judge_all(contract: Contract, traffic: Traffic) -> tuple[Verdict, ...]:
    """One verdict for each requirement of the contract, in its order."""
    return tuple(judge(requirement, traffic, contract) for requirement in contract.requirements)


class RunningVerdicts:
    """Verdicts on exchanges that come one after another, so that not all of them need to be in memory.

    They are those of `judge_all`, as long as the exchanges are in no groups: nobody planned what others have recorded.
    """

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._views: dict[bytes, RequestView] = {}
        self._tallies: dict[str, _Tally] = {}
        self._faults: dict[str, str] = {}
        self._expected: dict[str, list[Exchange]] = defaultdict(list)
        self._seen: list[Exchange] = []
        self._failed: list[Exchange] = []
        self._rows: list[tuple[Requirement, Check, CheckContext]] = []
        checks = load()
        for row in contract.requirements:
            self._rows.append((row, checks[row.check], CheckContext(contract, row.params, self._views)))
            self._tallies[row.id] = _Tally(counts_observations=row.level is Level.MAY)

    def add(self, x: Exchange) -> bool:
        """Judge an exchange, which is not needed after that. Whether it is evidence, or may become it."""
        light = x.without_content()
        self._seen.append(light)
        if x.status is not None and x.status >= 500:  # whether that is confirmed depends on the replies to come
            self._failed.append(x)
            return True
        return self._judge(x, light)

    def verdicts(self) -> tuple[Verdict, ...]:
        """One verdict for each requirement of the contract; nothing can be added any more."""
        run = Traffic(self._seen)
        self._rows = [(row, check, _context(row, check, run, self._contract)) for row, check, _ in self._rows]
        for x in self._failed:
            self._judge(x, x)
        return tuple(self._conclude(row, check, run, context) for row, check, context in self._rows)

    def _judge(self, x: Exchange, light: Exchange) -> bool:
        self._views.clear()
        scopes = {scope for scope, contains in _IN_SCOPE.items() if contains(x)}
        known, evidence = Conclusions(x), False
        for row, check, context in self._rows:
            if check.scope is Scope.GROUP or row.id in self._faults:
                continue
            tally = self._tallies[row.id]
            before = len(tally.evidence)
            try:
                findings = _findings(row, check, known, context) if check.scope in scopes else 0
                if isinstance(findings, int):
                    tally.add_satisfied(light, findings)
                else:
                    tally.add(light, findings)
                    evidence |= len(tally.evidence) > before
                if tally.examined or tally.violations:
                    self._expected.pop(row.id, None)
                elif check.expected_when is not None and _expected_of(row, check, x, context):
                    self._expected[row.id].append(light)
            except Exception as error:  # noqa: BLE001 - a check must never raise; one that does is a fault of the suite
                self._faults[row.id] = _fault_of_the_suite(check, error)
        return evidence

    def _conclude(self, row: Requirement, check: Check, run: Traffic, context: CheckContext) -> Verdict:
        if check.scope is Scope.GROUP:
            return judge(row, run, self._contract)
        if row.id in self._faults:
            return Verdict(row, Outcome.ERROR, self._faults[row.id])
        tally, expected = self._tallies[row.id], self._expected.get(row.id, ())
        return _verdict(row, tally, _decision(row, check, run, context, tally, expected))


def _subjects(requirement: Requirement, check: Check, traffic: Traffic) -> tuple[Conclusions, ...]:
    """The exchanges or groups that the requirement's check is shown, with what is known about them."""
    if check.scope is not Scope.GROUP:
        return traffic.by_scope[check.scope]
    word = requirement.id if check.keyed else requirement.params.get("parameter") or ""
    return traffic.by_group.get((check.group, word), ())


def _cases(subject: Exchange | Group) -> list[str]:
    """The ids of the cases of a subject; a violation that names none is attributed to the last."""
    if isinstance(subject, Group):
        return [x.case.id for members in subject.members.values() for x in members]
    return [subject.case.id]


def _were_expected(requirement: Requirement, check: Check, traffic: Traffic, context: CheckContext) -> list[Exchange]:
    """The exchanges whose correct replies must contain an occurrence for the requirement."""
    if check.scope is Scope.GROUP:
        subjects = (known.subject for known in _subjects(requirement, check, traffic))
        groups = [list(chain(*known.members.values())) for known in subjects if isinstance(known, Group)]
        return [x for group in groups if _some_expected(requirement, check, group, context) for x in group]
    if check.expected_when is None:
        return []
    expected = []
    for x, known in zip(traffic.exchanges, traffic.conclusions, strict=True):
        if requirement.id not in known.expected:
            known.expected[requirement.id] = _expected_of(requirement, check, x, context)
        if known.expected[requirement.id]:
            expected.append(x)
    return expected


def _expected_of(requirement: Requirement, check: Check, x: Exchange, context: CheckContext) -> bool:
    """Whether a correct reply must contain an occurrence, and the recording would show it."""
    return not is_unrecorded(requirement, check, x) and expected_of_case(requirement, check, x.case, context)


def _due(
    requirement: Requirement, check: Check, traffic: Traffic, context: CheckContext, expected: Sequence[Exchange]
) -> Iterator[tuple[str, ...]]:
    """The cases of each exchange, or of each group, that was expected to show the requirement."""
    if check.scope is not Scope.GROUP:
        yield from ((x.case.id,) for x in expected)
        return
    ids = {x.case.id for x in expected}
    for known in _subjects(requirement, check, traffic):
        cases = tuple(_cases(known.subject))
        if ids.intersection(cases):
            yield cases


def _some_expected(requirement: Requirement, check: Check, group: Sequence[Exchange], context: CheckContext) -> bool:
    """Whether a group shows the requirement: a plain/streamed pair without log probabilities says nothing of them."""
    return any(expected_of_case(requirement, check, x.case, context) for x in group)


def _refused_in_part(group: Exchange | Group) -> bool:
    """Whether each request in a role of the group was refused, though it is neither invalid nor adversarial."""
    return isinstance(group, Group) and any(
        all(x.refused and x.case.validity is not Validity.INVALID and not x.case.hostile for x in replies)
        for replies in group.members.values()
    )


def serves(requirement: Requirement, case: RequestCase, context: CheckContext) -> bool:
    """Whether a case is expected to show the requirement: what set cover and `conformance plan` count."""
    return expected_of_case(requirement, load()[requirement.check], case, context)


@dataclass(frozen=True)
class _Decision:
    """The outcome of a tally; `incomplete`: the run needs this verdict and has none. `due`: see `Verdict`."""

    outcome: Outcome
    reason: str = ""
    incomplete: bool = False
    due: tuple[tuple[str, ...], ...] = ()


def _decision(
    requirement: Requirement,
    check: Check,
    traffic: Traffic,
    context: CheckContext,
    tally: _Tally,
    expected: Sequence[Exchange] | None = None,
) -> _Decision:
    """The outcome, in this order: a violation, a confirmation that is missing, a pass, or why nothing was seen.

    `expected` are the exchanges that were expected to show the requirement, if that is known already.
    """
    if tally.violations:
        return _broken(requirement, tally)
    if tally.repeat:
        reason = f"{NEEDS_CONFIRMATION}{tally.unconfirmed[0]}"
        must = requirement.level is Level.MUST
        return _Decision(Outcome.INCONCLUSIVE, reason, must, tuple(dict.fromkeys(tally.repeat)))
    if tally.examined:
        unseen = unseen_forms(requirement, traffic.exchanges, context.contract)
        if unseen:
            reason = f"no accepted request had the documented form {', '.join(unseen)}"
            due = tuple((x.case.id,) for x in having_form(requirement, unseen, traffic.exchanges))
            return _Decision(Outcome.INCONCLUSIVE, reason, requirement.level is Level.MUST, due)
        return _Decision(Outcome.PASS)
    if expected is None:
        expected = _were_expected(requirement, check, traffic, context)
    return _nothing_seen(requirement, check, traffic, context, tally, expected)


def _broken(requirement: Requirement, tally: _Tally) -> _Decision:
    first = tally.evidence[0]
    reason = f"{first.at}: {first.message}" if first.at else first.message
    if requirement.level is Level.MAY:
        return _Decision(Outcome.PASS, f"left to the provider; {reason}")
    if not tally.reproducible:
        return _Decision(Outcome.FLAKY, f"not every time: {reason}")
    return _Decision(Outcome.FAIL if requirement.level is Level.MUST else Outcome.WARN, reason)


def _nothing_seen(
    requirement: Requirement,
    check: Check,
    traffic: Traffic,
    context: CheckContext,
    tally: _Tally,
    expected: Sequence[Exchange],
) -> _Decision:
    """No occurrence is never a pass: whether none was possible, none was requested, or one was expected."""
    must = requirement.level is Level.MUST
    if not expected or check.scope is Scope.GROUP:  # an incomplete group shows as little as none
        unsent = [case for case in traffic.unsent if expected_of_case(requirement, check, case, context)]
        if unsent:
            return _Decision(Outcome.NOT_RUN, f"{len(unsent)} of the planned requests that show it were not sent", True)
    if check.expected_when is None and not (expected and tally.unproved):
        return _Decision(Outcome.NOT_APPLICABLE, "not triggered; a client cannot trigger it")
    if not expected:
        return _Decision(Outcome.NOT_APPLICABLE, "no request in this run triggers it")
    compared = _subjects(requirement, check, traffic) if check.scope is Scope.GROUP and not check.keyed else ()
    if compared and all(_refused_in_part(known.subject) for known in compared):
        return _refused("a part of each comparison")
    due = tuple(_due(requirement, check, traffic, context, expected))
    if tally.unproved:
        return _Decision(Outcome.INCONCLUSIVE, tally.unproved[0], must, due)
    refused = [x for x in expected if x.refused and x.case.validity is not Validity.INVALID]
    if len(refused) == len(expected) and check.scope is not Scope.ERROR:
        statuses = ", ".join(sorted({str(x.status) for x in refused}))
        return _refused(f"all {len(expected)} requests that trigger it (HTTP {statuses})")
    reason = f"{len(expected)} requests were expected to show it, and none did"
    return _Decision(Outcome.INCONCLUSIVE, reason, must, due)


def _refused(what: str) -> _Decision:
    reason = f"the target refused {what}; the requirements on accepting such requests judge that"
    return _Decision(Outcome.NOT_APPLICABLE, reason)
