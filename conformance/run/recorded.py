"""Judges recorded traffic: a run for each recording of this suite, and for each endpoint and model in other recordings.

Those of others are judged exchange by exchange, and most of it is not kept, so they may be larger than memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit

from conformance.judge import RunningVerdicts, judge_all
from conformance.model import Contract
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps
from conformance.recording.foreign import RECORDED, RecordedEndpoint, unjudged
from conformance.recording.json_forms import case_out
from conformance.recording.load import Damaged, ForeignExchange, Loaded, NotJudged, OtherFile, OwnRecording
from conformance.run.reproducer import smallest, traffic
from conformance.run.result import Endpoint, Run, totals

KEPT_BYTES: Final = 32 * 1024 * 1024
"""Of replies that no finding names; beyond them, their bytes are not kept for the report."""
EVIDENCE_BYTES: Final = 128 * 1024 * 1024
"""Of replies that findings name."""
MOST_REASONS: Final = 1_000
"""Reasons why something was not judged that are kept word for word."""
NAMELESS: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass
class Reasons:
    """Why messages were not judged: how many, and the first of the reasons."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, reason: str) -> None:
        self.count += 1
        if len(self.first) < MOST_REASONS:
            self.first.append(reason)

    def extend(self, others: Reasons) -> None:
        self.first += others.first[: max(MOST_REASONS - len(self.first), 0)]
        self.count += others.count


@dataclass
class Audit:
    """What was found in the files. `left_out` are messages of the operation, `elsewhere` those of other operations."""

    runs: list[Run] = field(default_factory=list)
    left_out: Reasons = field(default_factory=Reasons)
    elsewhere: Reasons = field(default_factory=Reasons)
    not_judged: Reasons = field(default_factory=Reasons)
    unreadable: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    other_files: list[str] = field(default_factory=list)


def audit(contract: Contract, items: Iterable[Loaded], name: str, select: frozenset[str]) -> Audit:
    """Judge everything that was loaded. `name` is the name of the target, `select` the requirements that are judged."""
    result = Audit()
    own_recordings: list[OwnRecording] = []
    written: dict[str, list[Exchange]] = {}
    groups = _Groups(contract)
    for item in items:
        match item:
            case ForeignExchange():
                if item.endpoint is None:
                    written.setdefault(item.file, []).append(item.exchange)
                else:
                    groups.add(item.exchange, item.endpoint)
            case OwnRecording():
                own_recordings.append(item)
            case NotJudged():
                (result.elsewhere if item.other_operation else result.left_out).add(item.reason)
            case Damaged():
                (result.damaged if item.partly else result.unreadable).append(item.reason)
            case OtherFile():
                result.other_files.append(item.name)
    own_recordings += [_from_har(name, exchanges) for name, exchanges in written.items()]
    foreign = groups.finish()
    names = _Names(name, contract.provider, several=len(own_recordings) + len(foreign) > 1)
    runs = [_own_run(contract, recording, names) for recording in own_recordings]
    runs += [group.run(names, result) for group in foreign]
    for group in foreign:
        result.not_judged.extend(group.unjudged)
    result.runs = [
        replace(run, verdicts=tuple(verdict for verdict in run.verdicts if verdict.requirement.id in select))
        for run in runs
    ]
    return result


def _from_har(name: str, exchanges: list[Exchange]) -> OwnRecording:
    """A HAR file that this suite wrote: its cases belong to groups, so they are judged together, like a recording."""
    return OwnRecording(name, {}, tuple(exchanges), tuple(x.case for x in exchanges), (), _plan_hash(exchanges))


def _plan_hash(exchanges: Iterable[Exchange]) -> str:
    plan = sha256()
    for x in exchanges:
        plan.update(dumps(case_out(x.case)).encode("ascii"))
    return plan.hexdigest()


@dataclass
class _Names:
    """Names of targets, each once: the given one, or that of the provider; with the address and model of several."""

    given: str
    provider: str
    several: bool
    taken: set[str] = field(default_factory=set)

    def of(self, *parts: str) -> str:
        base = self.given or ("" if self.several else self.provider)
        words = [base, *(parts if self.several else ())]
        name = NAMELESS.sub("-", "-".join(filter(None, words))).strip("-") or self.provider
        number, unique = 2, name
        while unique in self.taken:
            unique, number = f"{name}-{number}", number + 1
        self.taken.add(unique)
        return unique


def _own_run(contract: Contract, recording: OwnRecording, names: _Names) -> Run:
    """The run that a recording of this suite was made of."""
    header = recording.header
    where = header.get("target", {})
    verdicts = judge_all(contract, traffic(recording.exchanges, recording.planned))
    stated = str(where.get("name") or "")
    name = names.of(stated) if names.several else names.given or stated or names.provider
    started_at, duration = _span(recording.exchanges)
    return Run(
        contract=contract,
        target=Endpoint.of({"base_url": RECORDED, "model": "", **where, "name": name}),
        profile=header.get("profile", RECORDED),
        seed=header.get("seed", 0),
        plan_sha256=recording.plan_sha256,
        planned=recording.planned,
        exchanges=recording.exchanges,
        verdicts=verdicts,
        totals=totals(recording.exchanges),
        started_at=header.get("started_at") or started_at,
        duration_s=duration,
        incomplete=recording.incomplete,
        claims=tuple(header.get("claims", ())),
        smallest=smallest(contract, verdicts, recording.exchanges),
    )


class _Groups:
    """The exchanges of other recordings, by endpoint and model."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._groups: dict[RecordedEndpoint, _Group] = {}
        self._without_model: list[tuple[Exchange, RecordedEndpoint]] = []

    def add(self, x: Exchange, endpoint: RecordedEndpoint) -> None:
        """Judge an exchange with those of its endpoint and model; without a model, with the first of its endpoint."""
        if endpoint.model:
            self._of(endpoint).add(x)
        elif (known := self._at(endpoint)) is not None:
            known.add(x)
        else:
            self._without_model.append((x, endpoint))

    def finish(self) -> list[_Group]:
        """All groups; nothing can be added any more."""
        for x, endpoint in self._without_model:
            (self._at(endpoint) or self._of(endpoint)).add(x)
        return list(self._groups.values())

    def _of(self, endpoint: RecordedEndpoint) -> _Group:
        key = replace(endpoint, headers=(), has_key=True)
        if key not in self._groups:
            self._groups[key] = _Group(self._contract, endpoint)
        return self._groups[key]

    def _at(self, endpoint: RecordedEndpoint) -> _Group | None:
        same = (
            group
            for key, group in self._groups.items()
            if (key.base_url, key.query) == (endpoint.base_url, endpoint.query)
        )
        return next(same, None)


class _Group:
    """Exchanges that are judged together."""

    def __init__(self, contract: Contract, endpoint: RecordedEndpoint) -> None:
        self.contract = contract
        self.endpoint = endpoint
        self.unjudged = Reasons()
        self.count = 0
        self._judging = RunningVerdicts(contract)
        self._exchanges: list[Exchange] = []
        self._evidence: set[str] = set()
        self._kept, self._kept_evidence = 0, 0
        self._totals: dict[str, int] = {}
        self._began, self._ended = float("inf"), 0.0
        self._plan = sha256()
        self._ids: set[str] = set()

    def add(self, x: Exchange) -> None:
        """Judge an exchange, and keep what the report may need of it."""
        x = self._with_id_of_its_own(x)
        self.count += 1
        if reason := unjudged(x):
            self.unjudged.add(f"{x.case.id}: {reason}")
        is_evidence = self._judging.add(x)
        for name, number in totals([x]).items():
            self._totals[name] = self._totals.get(name, 0) + number
        if x.last.started_at:
            self._began = min(self._began, x.last.started_at)
            self._ended = max(self._ended, x.last.started_at + x.last.elapsed)
        self._plan.update(dumps(case_out(x.case)).encode("ascii"))
        size = sum(len(piece.data) for piece in x.pieces)
        x.forget_views()
        if is_evidence and self._kept_evidence + size <= EVIDENCE_BYTES:
            self._kept_evidence += size
            self._evidence.add(x.case.id)
            self._exchanges.append(x)
        elif not is_evidence and self._kept + size <= KEPT_BYTES:
            self._kept += size
            self._exchanges.append(x)
        else:
            self._exchanges.append(x.without_content())

    def _with_id_of_its_own(self, x: Exchange) -> Exchange:
        """The exchange, with another id if a file was given twice."""
        name, number = x.case.id, 2
        while name in self._ids:
            name, number = f"{x.case.id}-{number}", number + 1
        self._ids.add(name)
        return x if name == x.case.id else Exchange(replace(x.case, id=name), x.attempts)

    def run(self, names: _Names, audited: Audit) -> Run:
        """The group as a run. Messages that were left out belong to no group; an only group counts them."""
        verdicts = self._judging.verdicts()
        exchanges = tuple(self._exchanges)
        evidence = [x for x in exchanges if x.case.id in self._evidence]
        reasons, left_out = [*self.unjudged.first], 0
        if not names.several:
            reasons, left_out = [*audited.left_out.first, *reasons], audited.left_out.count
        began = 0.0 if self._began == float("inf") else self._began
        incomplete = [*audited.damaged]
        if self.unjudged.count == self.count:
            incomplete.append(f"none of {self.count} exchanges could be judged: {self.unjudged.first[0]}")
        return Run(
            contract=self.contract,
            target=self._endpoint(names),
            profile=RECORDED,
            seed=0,
            plan_sha256=self._plan.hexdigest(),
            planned=tuple(x.case for x in exchanges),
            exchanges=exchanges,
            verdicts=verdicts,
            totals=self._totals,
            started_at=began,
            duration_s=max(self._ended - began, 0.0),
            incomplete=tuple(incomplete),
            recorded={
                "exchanges": self.count + left_out,
                "judged": self.count - self.unjudged.count,
                "reasons": reasons,
            },
            smallest=smallest(self.contract, verdicts, evidence),
        )

    def _endpoint(self, names: _Names) -> Endpoint:
        endpoint = self.endpoint
        return Endpoint(
            name=names.of(urlsplit(endpoint.base_url).netloc, endpoint.model),
            base_url=endpoint.base_url,
            model=endpoint.model,
            headers=tuple((name, None) for name in endpoint.headers),
            query=endpoint.query,
            key_variable=None if endpoint.has_key else "",
        )


def _span(exchanges: Iterable[Exchange]) -> tuple[float, float]:
    """When the first attempt began, and the seconds until the last one ended; attempts without a time do not count."""
    attempts = [attempt for x in exchanges for attempt in x.attempts if attempt.started_at]
    began = min((attempt.started_at for attempt in attempts), default=0.0)
    ended = max((attempt.started_at + attempt.elapsed for attempt in attempts), default=0.0)
    return began, max(ended - began, 0.0)
