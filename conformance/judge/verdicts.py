"""A requirement and all exchanges → its verdict. Pure: the same bytes give the same verdict, now and years later."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from conformance.contract.applicability import applies, expected_of_case
from conformance.judge.catalogue import Check, CheckContext, Scope, load
from conformance.judge.channels import PAIRS, within_one_channel
from conformance.judge.determinism import discount_nondeterminism
from conformance.judge.finding_cache import Conclusions, Packed, packed
from conformance.judge.outcome import Decision, decide, is_expected
from conformance.judge.tally import Tally, cases_of
from conformance.judge.traffic import IN_SCOPE, Traffic
from conformance.judge.unrecorded import is_unrecorded
from conformance.model import Contract, Level, Outcome, RequestCase, Requirement, Verdict
from conformance.model.exchange import Exchange, Group
from conformance.model.request_view import RequestView


def judge(requirement: Requirement, traffic: Traffic, contract: Contract) -> Verdict:
    """The verdict on one requirement, from all exchanges of a run."""
    check = load()[requirement.check]
    context = _context(requirement, check, traffic, contract)
    try:
        tally = _tally(requirement, check, traffic, context)
        decision = decide(requirement, check, traffic, context, tally)
    except Exception as error:  # noqa: BLE001 - a check must never raise; one that does is a fault of the suite
        return Verdict(requirement, Outcome.ERROR, _fault_of_the_suite(check, error))
    return _verdict(requirement, tally, decision)


def _context(requirement: Requirement, check: Check, traffic: Traffic, contract: Contract) -> CheckContext:
    """What the check may know of the run."""
    context = CheckContext(contract, requirement.params, traffic.cache.views)
    if check.needs_whole_run and (traffic.refused_alone or traffic.failing_cases or traffic.cut_beside_others):
        context = replace(
            context,
            refused_alone=traffic.refused_alone,
            accepted_values=traffic.accepted_values,
            failing_cases=traffic.failing_cases,
            cut_beside_others=traffic.cut_beside_others,
        )
    return context


def _verdict(requirement: Requirement, tally: Tally, decision: Decision) -> Verdict:
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
        kept=tuple(tuple(cases_of(subject)) for subject in tally.kept) if tally.violations else (),
        due=decision.due,
    )


def _tally(requirement: Requirement, check: Check, traffic: Traffic, context: CheckContext) -> Tally:
    tally = Tally(counts_observations=requirement.level is Level.MAY)
    for known in traffic.subjects(requirement, check):
        subject = known.subject
        findings = _findings(requirement, check, known, context)
        if isinstance(findings, int):
            tally.add_satisfied(subject, findings)
            continue
        if isinstance(subject, Group):
            pairs = traffic.groups.get(PAIRS, ())
            findings = tuple(within_one_channel(finding, subject, pairs) for finding in findings)
            if traffic.nondeterministic:
                findings = tuple(
                    discount_nondeterminism(finding, subject, traffic.nondeterministic) for finding in findings
                )
        tally.add(subject, findings)
    return tally


def _findings(requirement: Requirement, check: Check, known: Conclusions, context: CheckContext) -> Packed:
    """The findings on one subject: those of an earlier call, unless they depend on the whole run."""
    of_run = check.needs_whole_run and bool(context.refused_alone or context.failing_cases or context.cut_beside_others)
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

    They are those of `judge_all` as long as no exchange is in a group, as in recordings of others, which had no plan.
    """

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._views: dict[bytes, RequestView] = {}
        self._tallies: dict[str, Tally] = {}
        self._faults: dict[str, str] = {}
        self._expected: dict[str, list[Exchange]] = defaultdict(list)
        self._seen: list[Exchange] = []
        self._failed: list[Exchange] = []
        self._rows: list[tuple[Requirement, Check, CheckContext]] = []
        checks = load()
        for row in contract.requirements:
            self._rows.append((row, checks[row.check], CheckContext(contract, row.params, self._views)))
            self._tallies[row.id] = Tally(counts_observations=row.level is Level.MAY)

    def add(self, x: Exchange) -> bool:
        """Judge an exchange, which need not be kept afterwards. Whether it is evidence, or may become evidence."""
        light = x.without_content()
        self._seen.append(light)
        if x.status is not None and x.status >= 500:  # later replies decide whether that is confirmed
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
        scopes = {scope for scope, contains in IN_SCOPE.items() if contains(x)}
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
                elif check.expected_when is not None and is_expected(row, check, x, context):
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
        return _verdict(row, tally, decide(row, check, run, context, tally, expected))


def serves(requirement: Requirement, case: RequestCase, context: CheckContext) -> bool:
    """Whether a case is expected to show the requirement: what set cover and `conformance plan` count."""
    return expected_of_case(requirement, load()[requirement.check], case, context)
