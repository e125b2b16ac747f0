"""The exchanges of a run, with the look-ups that the search for causes needs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from conformance.judge.causes.cause import MOST_OF, BrokenRow
from conformance.judge.causes.request_settings import Settings, distinguishing, settings_of
from conformance.judge.causes.topics import topic_of
from conformance.judge.comparison import comparable, finish_reasons, texts
from conformance.model import Contract, Credential, Validity, Verdict
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps

COMMON: Final = 0.5
"""The share of requests: a member that more of them have is one that the plan adds to most, not one under test."""
CHANNEL_MEMBERS: Final = frozenset({"stream", "stream_options"})
"""Members that decide on the channel only; a cause is confined to a channel, never about one."""
_INCIDENTAL: Final = frozenset({"sampled", "one", "usage", "non-ascii", "plain"})
"""Settings that say little: many requests have them for reasons of their own."""


@dataclass(frozen=True)
class ExchangeIndex:
    """The exchanges of a run by the id of their case, under the contract that they are judged by."""

    contract: Contract
    exchanges: Mapping[str, Exchange]
    _settings: dict[str, Settings] = field(default_factory=dict)

    def row(self, verdict: Verdict) -> BrokenRow:
        """The broken requirement with the exchanges that show it: all that broke it, or else those of its evidence."""
        subjects = [cases for cases in verdict.broke if cases and cases[0] in self.exchanges]
        subjects = subjects or [(item.case,) for item in verdict.evidence if item.case in self.exchanges]
        failing = tuple(self.exchanges[cases[0]] for cases in subjects)
        return BrokenRow(verdict, topic_of(verdict), failing, frozenset(case for cases in subjects for case in cases))

    def settings(self, case: str) -> Settings:
        """The settings of the request of a case."""
        if case not in self._settings:
            self._settings[case] = settings_of(self.exchanges[case], self.contract)
        return self._settings[case]

    def settings_of_failures(self, rows: Sequence[BrokenRow]) -> tuple[str, ...]:
        """The settings that the requests of all failures have, and those that kept the same promises lack."""
        failing = {x.case.content: self.settings(x.case.id) for row in rows for x in row.failing}
        kept_by = (cases[-1] for row in rows for cases in row.verdict.kept)
        passing = {self.settings(case) for case in kept_by if case in self.exchanges}
        return distinguishing(list(failing.values()), passing)

    def sufficient_settings(self, row: BrokenRow) -> Settings:
        """The settings that all failures of a row have, if one of these requests has no others; else none."""
        of_failures = {self.settings(x.case.id) - _INCIDENTAL for x in row.failing}
        common = frozenset[str]().union(*of_failures).intersection(*of_failures)
        return common if common in of_failures else frozenset()

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
    def habitual_members(self) -> frozenset[str]:
        """The members that most requests have."""
        bodies = [x.case.body for x in self.ordinary]
        counts = Counter(name for body in bodies for name in body)
        return frozenset(name for name, count in counts.items() if count > COMMON * len(bodies))

    @cached_property
    def by_body(self) -> Mapping[str, tuple[Exchange, ...]]:
        """The exchanges that can be compared, by the body of their request without what decides on the channel."""
        by_body: dict[str, list[Exchange]] = defaultdict(list)
        for x in self.ordinary:
            if comparable(x):
                by_body[_body_without(x.case.body, "")].append(x)
        return {body: tuple(exchanges) for body, exchanges in by_body.items()}

    def has_effect(self, parameter: str, failing: Iterable[Exchange]) -> bool | None:
        """Whether leaving the parameter out changes most replies; None where no such request was sent."""
        pairs = [
            (x, other)
            for x in failing
            if comparable(x) and isinstance(x.case.body, Mapping) and parameter in x.case.body
            for other in self.by_body.get(_body_without(x.case.body, parameter), ())
        ]
        if not pairs:
            return None
        same = sum((texts(x), finish_reasons(x)) == (texts(other), finish_reasons(other)) for x, other in pairs)
        return same < MOST_OF * len(pairs)


def _body_without(body: Mapping[str, Any], parameter: str) -> str:
    """A body without a parameter, and without what decides on the channel only."""
    return dumps({name: body[name] for name in sorted(body) if name not in {parameter, *CHANNEL_MEMBERS}})


def members_of(x: Exchange) -> Collection[str]:
    """The members of a request that are not null; none where its body is no JSON object."""
    body = x.case.body
    return [name for name, value in body.items() if value is not None] if isinstance(body, Mapping) else ()
