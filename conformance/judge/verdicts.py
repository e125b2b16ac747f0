"""Requirement × exchanges → verdict. Pure: the same bytes give the same verdicts, now and years later."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from conformance.contract.applicability import applies, expected_of_case
from conformance.judge.catalogue import Check, CheckContext, Scope, load
from conformance.judge.determinism import excused, unsteady
from conformance.judge.finding_cache import Conclusions, FindingCache, packed
from conformance.model import (
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

MOST_EVIDENCE = 20
MOST_OBSERVATIONS = 100


@dataclass(frozen=True)
class Traffic:
    """Everything that was exchanged, arranged once for all requirements.

    `planned` are the cases that were to be sent (sent or not): what was planned and never sent is NOT_RUN, not green.
    `cache` holds what was concluded of some of these exchanges under the same contract before.
    """

    exchanges: Sequence[Exchange]
    planned: Sequence[RequestCase] = ()
    cache: FindingCache = field(default_factory=FindingCache, repr=False, compare=False)

    @cached_property
    def unsent(self) -> tuple[RequestCase, ...]:
        """What was planned and is not among the exchanges."""
        sent = {x.case.id for x in self.exchanges}
        return tuple(case for case in self.planned if case.id not in sent)

    @cached_property
    def groups(self) -> Mapping[str, tuple[Group, ...]]:
        """Groups by kind. A repeat of a case stands beside it, in each of its roles."""
        by_id = {x.case.id: x for x in self.exchanges}
        gathered: dict[tuple[str, str], dict[str, list[Exchange]]] = defaultdict(lambda: defaultdict(list))
        for x in self.exchanges:
            original = by_id.get(x.case.repeats, x)
            for part in original.case.groups or x.case.groups:
                gathered[part.kind, part.key][part.role].append(x)
        kinds: dict[str, list[Group]] = defaultdict(list)
        for (kind, key), roles in gathered.items():
            members = {role: tuple(some) for role, some in roles.items()}
            kinds[kind].append(Group(kind, key, members))
        return {kind: tuple(found) for kind, found in kinds.items()}

    @cached_property
    def by_group(self) -> Mapping[tuple[str, str], tuple[Conclusions, ...]]:
        """Groups by kind and the first word of their key, a requirement or a parameter; all of a kind without one."""
        gathered: dict[tuple[str, str], list[Conclusions]] = defaultdict(list)
        for kind, groups in self.groups.items():
            for group in groups:
                known = self.cache.of(group)
                for word in {"", group.key.partition(" ")[0]}:
                    gathered[kind, word].append(known)
        return {place: tuple(conclusions) for place, conclusions in gathered.items()}

    @cached_property
    def alone(self) -> Mapping[str, frozenset[str]]:
        """The values, as JSON, that were refused where nothing else set a request apart from one that was accepted.

        One that was accepted in another request was refused for its company.
        """
        found: dict[str, set[str]] = defaultdict(set)
        for group in self.groups.get("accept", ()):
            refused = [x.case.body for role in ("probe", "joint") for x in group.all(role) if x.refused]
            taken = [x.case.body for x in group.all("control") if x.successful] if refused else []
            for body, other in product(refused, taken):
                changed = _changed(other, body)
                if len(changed) == 1:
                    found[changed[0]].add(dumps(body[changed[0]]))
        left = ((name, frozenset(values) - self.taken.get(name, frozenset())) for name, values in found.items())
        return {name: values for name, values in left if values}

    @cached_property
    def taken(self) -> Mapping[str, frozenset[str]]:
        """The values, as JSON, that were accepted in some request."""
        found: dict[str, set[str]] = defaultdict(set)
        for x in self.exchanges:
            if x.successful and isinstance(x.case.body, Mapping):
                for name, value in x.case.body.items():
                    found[name].add(dumps(value))
        return {name: frozenset(values) for name, values in found.items()}

    @cached_property
    def unsteady(self) -> frozenset[str]:
        """The prompts that were answered in several ways."""
        return unsteady(self.exchanges)

    @cached_property
    def conclusions(self) -> tuple[Conclusions, ...]:
        """What is known of each exchange."""
        return tuple(map(self.cache.of, self.exchanges))

    @cached_property
    def by_scope(self) -> Mapping[Scope, tuple[Conclusions, ...]]:
        """The exchanges that are in each scope."""
        pairs = tuple(zip(self.exchanges, self.conclusions, strict=True))
        return {scope: tuple(known for x, known in pairs if rule(x)) for scope, rule in _IN_SCOPE.items()}


def _changed(one: object, other: object) -> list[str]:
    """The members that the other body has and this one has not, or not with this value."""
    if not isinstance(one, Mapping) or not isinstance(other, Mapping):
        return []
    return [name for name, value in other.items() if name not in one or dumps(one[name]) != dumps(value)]


def _judgeable(x: Exchange) -> bool:
    """A complete success on a request that keeps to its contract (or that the contract leaves open)."""
    return (
        x.successful
        and x.ending is Ending.COMPLETE
        and x.case.validity is not Validity.INVALID
        and x.case.credential is not Credential.WRONG
        and _readable(x.case)
    )


def _readable(case: RequestCase) -> bool:
    """Whether all readers see the same in the body: a JSON object, without a member that is named twice."""
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
    """What the findings of one requirement add up to.

    `observed`: each observation counts as an occurrence, because the requirement (a MAY) asks for nothing else.
    """

    observed: bool = False
    examined: int = 0
    exchanges: int = 0
    violations: int = 0
    solid: int = 0
    evidence: list[Evidence] = field(default_factory=list)
    unclear: list[str] = field(default_factory=list)
    doubt: str = ""
    repeat: list[tuple[str, ...]] = field(default_factory=list)
    observations: dict[tuple[str, str], Observation] = field(default_factory=dict)

    def add(self, cases: Sequence[str], findings: Iterable[Finding]) -> None:
        """Count what one subject shows; `cases` are the exchanges it consists of, the one to blame last."""
        before = self.examined
        for finding in findings:
            if isinstance(finding, Observation):
                self.examined += self.observed
                if len(self.observations) < MOST_OBSERVATIONS:
                    self.observations.setdefault((finding.subject, finding.value), finding)
            elif isinstance(finding, Inconclusive):
                self.unclear.append(finding.reason)
                if finding.repeat:
                    self.doubt = self.doubt or finding.reason
                    self.repeat.append(tuple(cases))
            else:
                self.examined += finding.count if isinstance(finding, Satisfied) else 1
                if isinstance(finding, Violation):
                    self._violated(finding, cases[-1])
        self.exchanges += self.examined > before

    def _violated(self, violation: Violation, case: str) -> None:
        self.violations += 1
        self.solid += not violation.flaky
        if len(self.evidence) < MOST_EVIDENCE:
            self.evidence.append(Evidence(violation.case or case, violation.at, violation.message))


def judge(requirement: Requirement, traffic: Traffic, contract: Contract) -> Verdict:
    """What the traffic shows of one requirement."""
    check = load()[requirement.check]
    needs_whole_run = (traffic.alone, traffic.taken) if check.needs_whole_run and traffic.alone else ()
    context = CheckContext(contract, requirement.params, traffic.cache.views, *needs_whole_run)
    tally = _Tally(observed=requirement.level is Level.MAY)
    try:
        for known in _subjects(requirement, check, traffic):
            subject = known.subject
            findings = None if check.needs_whole_run else known.findings.get(requirement.id)
            if findings is None:
                findings = known.findings[requirement.id] = packed(_findings(requirement, check, subject, context))
            if isinstance(findings, int):
                tally.examined += findings
                tally.exchanges += findings > 0
            else:
                if isinstance(subject, Group) and traffic.unsteady:
                    findings = tuple(excused(finding, subject, traffic.unsteady) for finding in findings)
                tally.add(_cases(subject), findings)
        outcome, reason, incomplete = _outcome(requirement, check, traffic, context, tally)
    except Exception as error:  # noqa: BLE001 - a check must never raise: if one does, that is our fault and says so
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        place = f"{at.tb_frame.f_code.co_name}:{at.tb_lineno}" if at else "?"
        reason = f"the check {check.name} raised {type(error).__name__}: {error} (in {place}); please report this"
        return Verdict(requirement, Outcome.ERROR, reason)
    return Verdict(
        requirement,
        outcome,
        reason,
        tally.examined,
        tally.exchanges,
        tally.violations,
        tuple(tally.evidence),
        tuple(tally.observations.values()),
        incomplete,
        tuple(dict.fromkeys(tally.repeat)),
    )


def judge_all(contract: Contract, traffic: Traffic) -> tuple[Verdict, ...]:
    """One verdict for each requirement of the contract, in its order."""
    return tuple(judge(requirement, traffic, contract) for requirement in contract.requirements)


def _subjects(requirement: Requirement, check: Check, traffic: Traffic) -> tuple[Conclusions, ...]:
    """The exchanges or groups that a requirement applies to, with what is known of them."""
    if check.scope is not Scope.GROUP:
        return traffic.by_scope[check.scope]
    word = requirement.id if check.keyed else requirement.params.get("parameter") or ""
    return traffic.by_group.get((check.group, word), ())


def _findings(
    requirement: Requirement, check: Check, subject: Exchange | Group, context: CheckContext
) -> Iterable[Finding]:
    if requirement.when and isinstance(subject, Exchange) and not applies(requirement, context.request(subject)):
        return ()
    return check.function(subject, context)


def _cases(subject: Exchange | Group) -> list[str]:
    """The ids of what a subject consists of, the one to blame last."""
    if isinstance(subject, Group):
        return [x.case.id for members in subject.members.values() for x in members]
    return [subject.case.id]


def _were_expected(requirement: Requirement, check: Check, traffic: Traffic, context: CheckContext) -> list[Exchange]:
    """The exchanges that must show an occasion for the requirement."""
    if check.scope is Scope.GROUP:
        groups = [known.subject for known in _subjects(requirement, check, traffic)]
        return [x for group in groups if isinstance(group, Group) for some in group.members.values() for x in some]
    if check.expected_when is None:
        return []
    expected = []
    for x, known in zip(traffic.exchanges, traffic.conclusions, strict=True):
        if requirement.id not in known.expected:
            known.expected[requirement.id] = expected_of_case(requirement, check, x.case, context)
        if known.expected[requirement.id]:
            expected.append(x)
    return expected


def _refused_in_part(group: Exchange | Group) -> bool:
    """Whether a role of the group, which a target may well answer, was refused each time."""
    return isinstance(group, Group) and any(
        all(x.refused and x.case.validity is not Validity.INVALID and not x.case.hostile for x in replies)
        for replies in group.members.values()
    )


def serves(requirement: Requirement, case: RequestCase, context: CheckContext) -> bool:
    """Whether a case is due to show the requirement: what set cover and `conformance plan` count."""
    return expected_of_case(requirement, load()[requirement.check], case, context)


def _outcome(
    requirement: Requirement, check: Check, traffic: Traffic, context: CheckContext, tally: _Tally
) -> tuple[Outcome, str, bool]:
    if tally.violations:
        first = f"{tally.evidence[0].at}: " if tally.evidence[0].at else ""
        reason = first + tally.evidence[0].message
        if requirement.level is Level.MAY:
            return Outcome.PASS, f"left to the provider; {reason}", False
        if not tally.solid:
            return Outcome.FLAKY, f"not each time: {reason}", False
        return (Outcome.FAIL if requirement.level is Level.MUST else Outcome.WARN), reason, False
    required_by_row = requirement.level is Level.MUST
    if tally.repeat:
        return Outcome.INCONCLUSIVE, f"unconfirmed: {tally.doubt}", required_by_row
    if tally.examined:
        return Outcome.PASS, "", False
    return _nothing_seen(requirement, check, traffic, context, tally, required_by_row)


def _nothing_seen(
    requirement: Requirement,
    check: Check,
    traffic: Traffic,
    context: CheckContext,
    tally: _Tally,
    required_by_row: bool,
) -> tuple[Outcome, str, bool]:
    """No occurrence is never green: say whether none could come, none was asked for, or one was due."""
    expected_when = _were_expected(requirement, check, traffic, context)
    if not expected_when or check.scope is Scope.GROUP:  # half a group shows as little as none of it
        unsent = [case for case in traffic.unsent if expected_of_case(requirement, check, case, context)]
        if unsent:
            return Outcome.NOT_RUN, f"not sent: {len(unsent)} of the planned requests that show it", True
    if check.expected_when is None and not (expected_when and tally.unclear):
        return Outcome.NOT_APPLICABLE, "no occasion came up, and a client cannot provoke one", False
    if not expected_when:
        return Outcome.NOT_APPLICABLE, "no request that was sent asks for it", False
    compared = _subjects(requirement, check, traffic) if check.scope is Scope.GROUP and not check.keyed else ()
    if compared and all(_refused_in_part(known.subject) for known in compared):
        reason = "the target refused a part of each comparison"
        return Outcome.NOT_APPLICABLE, f"{reason}; the rows on accepting such requests speak of that", False
    if tally.unclear:
        return Outcome.INCONCLUSIVE, tally.unclear[0], required_by_row
    refused = [x for x in expected_when if x.refused]
    if len(refused) == len(expected_when) and check.scope is not Scope.ERROR:
        statuses = ", ".join(sorted({str(x.status) for x in refused}))
        reason = f"the target refused all {len(expected_when)} requests that ask for it (HTTP {statuses})"
        return Outcome.NOT_APPLICABLE, f"{reason}; the rows on accepting them speak of that", False
    return Outcome.INCONCLUSIVE, f"{len(expected_when)} requests were due to show it, and none did", required_by_row
