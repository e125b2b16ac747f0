"""What a certificate demands of a run beyond a bundle without faults: one table, for `certify` and for `verify`.

Whoever signs can leave out the demands of `certify`, so a verifier examines each of them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from statistics import median
from typing import Any, Final

from conformance.certificate.examine import Examined
from conformance.certificate.reasons import Rejection
from conformance.certificate.trust import SELF
from conformance.model import Contract
from conformance.model.budget import CERTIFY, usual
from conformance.recording import Recording
from conformance.recording.plan_lock import PlanLock, seed_of

MOST_AGE: Final = timedelta(days=30)
"""The age of a run when it is certified: servers change with each release, commonly within weeks."""
CLOCKS: Final = timedelta(days=1)
"""The difference between the clocks of target and tester: time zones are confused more often than days."""


@dataclass(frozen=True)
class Certified:
    """A run that is to be certified, or was, with the terms that the signer adds."""

    lock: PlanLock
    recording: Recording
    contract: Contract | None
    assurance: str
    issued_at: datetime

    @property
    def plan(self) -> Any:
        return self.lock.document

    @property
    def began(self) -> datetime:
        return datetime.fromtimestamp(self.recording.header["started_at"], UTC)

    @property
    def ended(self) -> datetime:
        return datetime.fromtimestamp((self.recording.footer or {})["ended_at"], UTC)


def profile(run: Certified) -> Iterator[str]:
    """The requests are those of the profile for certificates."""
    if run.plan["profile"] != CERTIFY:
        yield f"the plan has the profile {run.plan['profile']}; expected {CERTIFY}"


def hostile(run: Certified) -> Iterator[str]:
    """Adversarial requests are part of the plan."""
    if run.plan["hostile"] is not True:
        yield "the plan leaves out adversarial requests, which a certificate covers"


def ceilings(run: Certified) -> Iterator[str]:
    """No ceiling is below that of the profile: a lower one leaves out requests that find defects."""
    for name, least in asdict(usual(CERTIFY)).items():
        planned = run.plan["ceilings"].get(name)
        if planned is not None and least is not None and not planned >= least:
            yield f"the plan has a ceiling of {planned} {name.replace('_', ' ')}; expected {least} at least"


def claims(run: Certified) -> Iterator[str]:
    """Each claim names an optional parameter of the contract, and is the same in plan and recording."""
    known = (
        {f"no {name}" for name, parameter in run.contract.parameters.items() if not parameter.required}
        if (run.contract)
        else set(run.plan["claims"])
    )
    for claim in run.plan["claims"]:
        if claim not in known:
            yield f"the plan has the claim {claim!r:.60}; expected 'no PARAMETER' with an optional one of the contract"


def seed(run: Certified) -> Iterator[str]:
    """Where the certifier gave the nonce, the seed follows from it."""
    if run.assurance != SELF and run.plan["seed"] != seed_of(run.lock.nonce):
        yield f"the seed is {run.plan['seed']}; expected {seed_of(run.lock.nonce)}, derived from the nonce"


def after_the_run(run: Certified) -> Iterator[str]:
    """The certificate is issued after the run."""
    if run.issued_at < run.ended - timedelta(seconds=2):  # clocks are set back by as much
        yield f"it was issued on {run.issued_at:%Y-%m-%d %H:%M}, before the run ended on {run.ended:%Y-%m-%d %H:%M}"


def by_the_clock_of_the_target(run: Certified) -> Iterator[str]:
    """The Date fields of the replies agree with the times of the recording."""
    skews = [
        (date - attempt.started_at)
        for exchange in run.recording.exchanges
        for attempt in exchange.attempts
        for name, value in attempt.headers
        if name.lower() == "date" and (date := _timestamp(value)) is not None
    ]
    if skews and abs(median(skews)) > CLOCKS.total_seconds():
        days = abs(median(skews)) / 86_400
        yield f"the Date fields of {len(skews)} replies differ from the recorded times by {days:.1f} days (median)"


def recent(run: Certified) -> Iterator[str]:
    """The run is recent when it is certified."""
    if run.issued_at - run.ended > MOST_AGE:
        days = (run.issued_at - run.ended).days
        yield f"the run ended {days} days before it was certified; expected {MOST_AGE.days} at most"


Demand = Callable[[Certified], Iterator[str]]
DEMANDS: Final[tuple[tuple[str, Demand], ...]] = (
    ("PLAN_DEPARTED", profile),
    ("PLAN_DEPARTED", hostile),
    ("PLAN_DEPARTED", ceilings),
    ("PLAN_DEPARTED", claims),
    ("SEED_CHOSEN", seed),
    ("DATES_DISORDERED", after_the_run),
    ("DATES_DISORDERED", by_the_clock_of_the_target),
    ("RUN_TOO_OLD", recent),
)
"""Each demand with the code of its rejection. Those on files, records and verdicts are in `examine`, which both run."""


def unmet(examined: Examined, assurance: str, issued_at: datetime) -> Iterator[Rejection]:
    """The demands that a bundle does not meet; an unreadable one was rejected by `examine`."""
    lock, recording = examined.lock, examined.recording
    if lock is None or recording is None or recording.footer is None or examined.malformed:
        return
    run = Certified(lock, recording, examined.contract, assurance, issued_at)
    for code, demand in DEMANDS:
        try:
            yield from (Rejection(code, message) for message in demand(run))
        except (ArithmeticError, AttributeError, KeyError, OSError, TypeError, ValueError) as error:
            yield Rejection("BUNDLE_MALFORMED", f"{demand.__name__}: {type(error).__name__}: {error}")


def _timestamp(value: str) -> float | None:
    try:
        return parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
