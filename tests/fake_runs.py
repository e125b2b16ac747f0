"""Runs that nobody made: judged by hand, so that reports can be tested without a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conformance.judge import fixtures as ex
from conformance.model import (
    Evidence,
    Layer,
    Level,
    Observation,
    Outcome,
    Requirement,
    Source,
    Verdict,
)
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.run import Endpoint, Run

HOSTILE = "</script><img src=x onerror=alert(1)>\"'`&amp; \x00\x1b[31m\u202e\u2028 \u05d0\u05d1 \ud800 ${{1}} {{7*7}}"


def target(name: str = "example", base_url: str = "http://127.0.0.1:8080/v1", model: str = "m") -> Endpoint:
    return Endpoint(name, base_url, model)


def requirement(id: str = "usage.chunk.empty-choices", level: Level = Level.MUST, **more: Any) -> Requirement:  # noqa: A002
    known: dict[str, Any] = {
        "check": "usage_chunk_has_no_choices",
        "layer": Layer.CONTRACT,
        "promise": "The chunk that reports usage has an empty choices list.",
        "source": Source("#/components/schemas/StreamOptions/properties/include_usage", "001_example.txt:212"),
    }
    return Requirement(id=id, level=level, **{**known, **more})


def verdict(outcome: Outcome = Outcome.PASS, row: Requirement | None = None, **more: Any) -> Verdict:
    row = row or requirement()
    examined = 0 if outcome in {Outcome.NOT_APPLICABLE, Outcome.NOT_RUN, Outcome.ERROR, Outcome.INCONCLUSIVE} else 6
    return Verdict(row, outcome, **{"examined": examined, "exchanges": examined, **more})


def stream(case: str = "scenario/3f9a1c", chunks: int = 6, text: str = " 4") -> Exchange:
    """A stream whose last chunk carries usage beside a choice, with arrival times that have a pause."""
    body = [ex.completion(ex.choice(f"{text}{place}", finish=None), usage=None) for place in range(chunks)]
    body.append(ex.completion(ex.choice("", finish="length"), usage=ex.usage(4, chunks)))
    x = ex.stream(*body, request={"stream_options": {"include_usage": True}, "max_tokens": chunks}, id=case)
    times = [0.110 + 0.021 * place + (0.3 if place > chunks // 2 else 0) for place in range(len(x.pieces))]
    pieces = tuple(Piece(at, piece.data) for at, piece in zip(times, x.pieces, strict=True))
    return Exchange(x.case, (replace(x.last, pieces=pieces, elapsed=times[-1] + 0.01),))


def broken(case: str = "scenario/3f9a1c", event: int = 6, **more: Any) -> Verdict:
    """A failed MUST with one occurrence in a stream."""
    message = "choices is [{'index': 0}] beside usage; expected []"
    evidence = (Evidence(case, f"event {event} /choices", message),)
    given = {
        "examined": 6,
        "exchanges": 6,
        "violations": 2,
        "reason": f"event {event}: {message}",
        "evidence": evidence,
    }
    return Verdict(requirement(), Outcome.FAIL, **{**given, **more})


def run(*verdicts: Verdict, exchanges: Sequence[Exchange] = (), **more: Any) -> Run:
    known: dict[str, Any] = {
        "target": target(),
        "profile": "gate",
        "seed": 1,
        "plan_sha256": "b" * 64,
        "totals": {"requests": 118, "attempts": 121, "prompt_tokens": 1812, "completion_tokens": 1204},
        "started_at": 1_760_000_000.0,
        "duration_s": 14.25,
        "planned": tuple(x.case for x in exchanges),
    }
    contract = ex.contract(requirements=tuple(verdict.requirement for verdict in verdicts))
    return Run(contract=contract, exchanges=tuple(exchanges), verdicts=verdicts, **{**known, **more})


def failing() -> Run:
    """One of each outcome, with the exchange that breaks the promise."""
    rows = [
        broken(),
        verdict(
            Outcome.WARN,
            requirement("errors.envelope.members", Level.SHOULD, layer=Layer.ECOSYSTEM, check="usage_adds_up"),
            violations=1,
            reason="body: no member 'param'; expected message, type, param, code",
            evidence=(
                Evidence("invalid/77ab01", "body /error", "no member 'param'; expected message, type, param, code"),
            ),
        ),
        verdict(Outcome.FLAKY, requirement("stream.id.one"), violations=1, reason="not each time: two ids"),
        verdict(
            Outcome.ERROR, requirement("framing.utf8"), reason="the check x raised ValueError: no; please report this"
        ),
        verdict(
            Outcome.INCONCLUSIVE, requirement("stop.text"), reason="3 requests were due, none did", incomplete=True
        ),
        verdict(Outcome.NOT_RUN, requirement("logprobs.parallel"), reason="the budget ended", incomplete=True),
        verdict(
            Outcome.PASS,
            requirement("usage.total.adds-up", check="usage_adds_up"),
            observations=(Observation("usage unasked", "sent on each stream", "event 3"),),
        ),
        verdict(Outcome.NOT_APPLICABLE, requirement("echo.prefix"), reason="no request that was sent asks for it"),
    ]
    refusal = ex.error(request={"temperature": 3}, id="invalid/77ab01", note="temperature above its maximum")
    least = ex.plain(ex.completion(ex.choice()), {"stream": True}, id="shrink/5ma11e57", origin="shrink")
    return run(
        *rows,
        exchanges=(stream(), refusal, least),
        incomplete=("the budget ended before 4 planned requests",),
        smallest={"usage.chunk.empty-choices": least.case.id, "errors.envelope.members": refusal.case.id},
    )


def hostile() -> Run:
    """Text that wants out of its place, in every place that a target can write to."""
    x = ex.stream(
        ex.completion(ex.choice(HOSTILE, finish=None)),
        ex.completion(ex.choice(HOSTILE), usage=ex.usage()),
        request={"prompt": HOSTILE},
        id="text/0bad00",
        headers={"x-hostile": HOSTILE.encode("utf-8", "replace").decode("latin-1")},
    )
    failed = Attempt(1.0, None, error=HOSTILE, elapsed=0.5)
    evidence = (Evidence("text/0bad00", "event 1 /choices", f"text is {HOSTILE}; expected {HOSTILE}"),)
    rows = [
        broken(evidence=evidence, reason=HOSTILE),
        verdict(Outcome.PASS, requirement("usage.x"), observations=(Observation(HOSTILE, HOSTILE, HOSTILE),)),
        verdict(Outcome.INCONCLUSIVE, requirement("usage.y"), reason=HOSTILE, incomplete=True),
    ]
    there = target(HOSTILE, "http://127.0.0.1:1/</script>", HOSTILE)
    least = {"usage.chunk.empty-choices": x.case.id}
    return run(
        *rows,
        exchanges=(Exchange(x.case, (failed, x.last)),),
        target=there,
        incomplete=(HOSTILE,),
        claims=(HOSTILE,),
        smallest=least,
    )


def large(exchanges: int = 600, rows: int = 300) -> Run:
    """Every exchange is evidence for something, in an answer long enough to fill a page."""
    streams = [stream(f"pairs/{number:06x}", 40, " some words of an answer") for number in range(exchanges)]
    per = max(exchanges // rows, 1)
    verdicts = [
        broken(
            evidence=tuple(
                Evidence(x.case.id, "event 40 /choices", "choices is [{'index': 0}] beside usage; expected []")
                for x in streams[place * per : place * per + per]
            ),
            violations=per,
        )
        for place in range(rows)
    ]
    named = [replace(one, requirement=requirement(f"area{n % 20}.row-{n}")) for n, one in enumerate(verdicts)]
    least = {one.requirement.id: one.evidence[0].case for one in named}
    return run(*named, exchanges=streams, smallest=least)
