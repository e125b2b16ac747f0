"""Checks before a run: address, key, model, clock, proxies, redirects and buffering on the way to a target."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlsplit

from conformance.judge.catalogue import show
from conformance.model import Contract, Credential, Phase, RequestCase
from conformance.model.budget import Account, Budget
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps
from conformance.run.preflight import obstacle
from conformance.send import Sender, Target, TimeoutPolicy

PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
CLOCK_TOLERANCE: Final = 60.0
"""Seconds: more than a request takes, and far more than clocks differ that NTP keeps."""
TOKENS: Final = 24
"""Enough for a stream of more events than one network packet usually holds."""


class State(StrEnum):
    """Fine, worth knowing, or an obstacle to a run."""

    FINE = "ok"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Symptom:
    """What was checked, what was seen, and what to do where it is not fine."""

    about: str
    state: State
    seen: str


async def examine(target: Target, contract: Contract, model: str, timeouts: TimeoutPolicy) -> AsyncIterator[Symptom]:
    """Check everything in turn, with three small requests at most; none after a reply that is not an API's."""
    for symptom in _environment(target):
        yield symptom
    async with Sender(target, Account(Budget(requests=6)), timeouts=replace(timeouts, retries=1)) as sender:
        body = {"model": model, "prompt": "1, 2, 3, 4,", "max_tokens": TOKENS}
        plain = await _sent(sender, _case("plain", body))
        if plain.status is not None and urlsplit(target.base_url).scheme == "https":
            yield Symptom("transport", State.FINE, "TLS, certificate verified")
        reason = obstacle(plain, target)
        if reason:
            yield Symptom("target", State.WRONG, reason)
            return
        for symptom in _plain(plain, target, model):
            yield symptom
        if not plain.successful or not plain.choices:
            return
        if target.key:
            wrong_key = replace(_case("wrong-key", {**body, "max_tokens": 1}), credential=Credential.WRONG)
            yield _key(await _sent(sender, wrong_key))
        if "stream" in contract.parameters:
            yield _stream(await _sent(sender, _case("stream", {**body, "stream": True})))


def _case(name: str, body: dict[str, Any]) -> RequestCase:
    return RequestCase(f"doctor/{name}", dumps(body).encode("ascii"), "doctor")


async def _sent(sender: Sender, case: RequestCase) -> Exchange:
    (exchange,) = await sender.send(Phase(case.id, (case,)))
    return exchange


def _environment(target: Target) -> Iterator[Symptom]:
    """What can be checked without sending anything."""
    secure = urlsplit(target.base_url).scheme == "https"
    if not secure and target.loopback:
        yield Symptom("transport", State.FINE, "loopback, unencrypted")
    elif not secure and target.key:
        yield Symptom("transport", State.WRONG, "http:// to another machine: the key is sent unencrypted; use https://")
    elif not secure:  # what TLS does is only known after a reply
        yield Symptom("transport", State.NOTE, "http:// to another machine: everything is sent unencrypted")
    variables = [name for name in PROXIES if os.environ.get(name) or os.environ.get(name.lower())]
    if variables and not target.loopback:
        used = "used" if target.proxy_from_env else "not used; --proxy-from-env uses it"
        yield Symptom("proxy", State.NOTE, f"{', '.join(variables)} is set and {used}")


def _plain(x: Exchange, target: Target, model: str) -> Iterator[Symptom]:
    seen = f"HTTP {x.status} after {x.last.elapsed:.2f} s"
    if not x.successful:
        yield Symptom("request", State.WRONG, f"{seen}, with {show(x.content[:200])}; check --model and --base-url")
        return
    coding = x.header("content-encoding")
    if coding:
        yield Symptom("compression", State.NOTE, f"replies are compressed ({show(coding)}); events may be delayed")
    if not x.choices:
        yield Symptom("request", State.WRONG, f"{seen}, with {show(x.content[:200])}; expected a completion")
        return
    yield Symptom("request", State.FINE, f"{seen}, {x.last.http_version}")
    answered_by = x.json.get("model") if isinstance(x.json, dict) else None
    seen = f"asked for {show(model)}, answered by {show(answered_by)}"
    if answered_by is None:
        seen = f"asked for {show(model)}; the reply does not name its model"
    yield Symptom("model", State.FINE if answered_by == model else State.NOTE, seen)
    yield from _clock(x)


def _clock(x: Exchange) -> Iterator[Symptom]:
    try:
        server_time = parsedate_to_datetime(x.header("date") or "").timestamp()
    except (TypeError, ValueError, OverflowError):
        yield Symptom("clock", State.NOTE, "the target sends no Date that can be parsed; the clocks cannot be compared")
        return
    difference = server_time - time.time()
    state = State.FINE if abs(difference) <= CLOCK_TOLERANCE else State.NOTE
    advice = "" if state is State.FINE else "; correct one of them: `created` and Retry-After are judged by them"
    yield Symptom(
        "clock", state, f"{abs(difference):.0f} s {'ahead of' if difference > 0 else 'behind'} this machine{advice}"
    )


def _key(x: Exchange) -> Symptom:
    if x.status in {401, 403}:
        return Symptom("key", State.FINE, f"a wrong key is refused with HTTP {x.status}")
    if x.successful:
        return Symptom("key", State.NOTE, f"a wrong key gets HTTP {x.status}: the target does not check keys")
    seen = f"HTTP {x.status}" if x.status is not None else f"no response ({x.last.error})"
    return Symptom("key", State.NOTE, f"a wrong key gets {seen}; expected HTTP 401 or 403")


def _stream(x: Exchange) -> Symptom:
    """Whether events arrive as they are generated: many events at one instant have been buffered on the way."""
    if not x.successful or not x.streamed:
        return Symptom("stream", State.NOTE, f"HTTP {x.status} with {x.media_type or 'no media type'}: no event stream")
    arrivals = [piece.at for piece in x.pieces]
    span, events = arrivals[-1] - arrivals[0] if arrivals else 0.0, len(x.messages)
    first = arrivals[0] if arrivals else 0
    observed = f"{events} events in {len(arrivals)} pieces over {span:.2f} s, the first after {first:.2f} s"
    if events > 4 and (len(arrivals) == 1 or span < 0.02 * x.last.elapsed):
        return Symptom(
            "stream", State.NOTE, f"{observed}: buffered on the way; switch off buffering in the proxy or server"
        )
    return Symptom("stream", State.FINE, observed)
