"""All exchanges of a run, arranged for the judge: by group, by scope, and what only the whole run can say.

One exchange may look broken for a reason that others show: the value was refused everywhere, the target fails on all
requests of this kind, the reply broke off because others ran at the same time, or the target had stopped answering.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Final

from conformance.judge.catalogue import Check, Scope
from conformance.judge.determinism import nondeterministic_prompts
from conformance.judge.finding_cache import Conclusions, FindingCache
from conformance.model import BUSY, Credential, Ending, RequestCase, Requirement, Validity
from conformance.model.exchange import Exchange, Group
from conformance.model.json_text import dumps, has_repeated_names

FEWEST_ALIKE: Final = 2
"""Different requests with the same server error, at least, before one of them counts as confirmed by the others."""
FAILING_SHARE: Final = 0.5
"""Of the requests of one kind: from here on a server error belongs to the kind. Errors at random stay far below it."""
ATTEMPTING_GROUPS: Final = frozenset({"accept", "refuse", "observe"})
"""The kinds of groups whose probe tries one value beside its control."""


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

    def subjects(self, requirement: Requirement, check: Check) -> tuple[Conclusions, ...]:
        """The exchanges or groups that the requirement's check is shown, with what is known about them."""
        if check.scope is not Scope.GROUP:
            return self.by_scope[check.scope]
        word = requirement.id if check.keyed else requirement.params.get("parameter") or ""
        return self.by_group.get((check.group, word), ())

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
    def refused_alone(self) -> Mapping[str, frozenset[str]]:
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
            (name, frozenset(values) - self.accepted_values.get(name, frozenset()))
            for name, values in refused_values.items()
        )
        return {name: values for name, values in never_accepted if values}

    @cached_property
    def accepted_values(self) -> Mapping[str, frozenset[str]]:
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

        None where one broke off alone as well: then something else is the cause. Once that has helped, every case
        is sent alone, so that one which breaks off after that, and is not sent again, did so alone.
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
    def failing_cases(self) -> frozenset[str]:
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
                if different >= FEWEST_ALIKE and different >= len(requests) * FAILING_SHARE:
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
        return {scope: tuple(known for x, known in pairs if rule(x)) for scope, rule in IN_SCOPE.items()}


def _is_silent(x: Exchange) -> bool:
    return x.status is None and x.ending is not Ending.ABANDONED


def cut(x: Exchange) -> bool:
    """Whether the response to an ordinary request broke off, or did not end in time."""
    return x.ending in {Ending.TRUNCATED, Ending.TIMED_OUT} and x.status is not None and not x.case.hostile


def _tried(case: RequestCase) -> set[str]:
    """The requirements on acceptance and refusal that a case tries, and the values that it tries for them."""
    parts = [part for part in case.groups if part.kind in ATTEMPTING_GROUPS and part.role in {"probe", "joint"}]
    return {part.key for part in parts} | {part.key.partition(" ")[0] for part in parts if part.role == "probe"}


def _changed(control: object, body: object) -> list[str]:
    """The members of the body that its control lacks, or has with another value."""
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
    return isinstance(case.body, Mapping) and not (case.hostile and has_repeated_names(case.content))


def _asks_stream(x: Exchange) -> bool:
    body = x.case.body
    return isinstance(body, Mapping) and body.get("stream") is True


IN_SCOPE: Mapping[Scope, Callable[[Exchange], bool]] = {
    Scope.ANY: lambda _: True,
    Scope.SUCCESS: _judgeable,
    Scope.PLAIN: lambda x: _judgeable(x) and not _asks_stream(x),
    Scope.STREAM: lambda x: _judgeable(x) and _asks_stream(x),
    Scope.ERROR: lambda x: x.status is not None and x.status >= 400 and x.ending is Ending.COMPLETE,
}
