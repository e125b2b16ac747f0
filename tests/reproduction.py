"""Runs the commands of a report against the target again, and judges whether what comes back shows the violation."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from conformance.config.settings import settings
from conformance.contract import load
from conformance.model import Contract, Ending, RequestCase, Verdict
from conformance.model.exchange import Attempt, Exchange, Piece
from conformance.reference import serve
from conformance.report import outputs, results
from conformance.run.launch import launch
from conformance.run.reproducer import controls_of, shows
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.fault import Fault

KEY = "sk-reproduction-0123456789"
SECONDS = 20
"""More than any answer of the reference takes; what is slower counts as no answer."""
STALLED, SHORT = 28, 18
"""Exit codes of curl: a time-out, and a body that ended early."""


def commands(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Case and curl command of each request that the report prints for a row."""
    smallest = row.get("smallest")
    printed = [smallest] if smallest else []
    listed = [entry for entry in (*printed, *row["evidence"]) if entry["curl"] and "repeats" not in entry]
    yield from {entry["case"]: entry["curl"] for entry in listed}.items()


def not_reproduced(fault: Fault, provider: str, out: Path, profile: str = "gate") -> tuple[int, list[str]]:
    """How many commands were run for a fault, and those after which nothing was seen though the report promises it."""
    contract = load(provider)
    reference = altered_reference(contract, KEY, faults=(fault,), models=("reference",))
    with serve(reference) as base_url:
        given = {"base_url": base_url, "model": "reference", "out": str(out), "profile": profile}
        before = os.environ.get("CONFORMANCE_API_KEY")
        os.environ["CONFORMANCE_API_KEY"] = KEY
        try:
            run = launch(settings(provider, given))
        finally:
            if before is None:
                del os.environ["CONFORMANCE_API_KEY"]
            else:
                os.environ["CONFORMANCE_API_KEY"] = before
        document = results.document(run, folder=str(out))
        outputs.write(out, document, run.exchanges, page=False)
        exchanges = {x.case.id: x for x in run.exchanges}
        verdicts = {verdict.requirement.id: verdict for verdict in run.verdicts}
        count, missed = 0, []
        for row in document["requirements"]:
            if row["outcome"] not in {"fail", "warn", "flaky"}:
                continue
            for case, command in commands(row):
                count += 1
                if case not in exchanges or not _seen(exchanges, case, command, verdicts[row["id"]], contract):
                    missed.append(f"{fault.name} {row['id']} {case}: {command[:300]}")
    return count, missed


def _seen(exchanges: Mapping[str, Exchange], case: str, command: str, verdict: Verdict, contract: Contract) -> bool:
    beside = controls_of(exchanges[case], verdict, exchanges)
    return shows(verdict.requirement, sent(command, exchanges[case].case), beside, contract)


def sent(command: str, case: RequestCase) -> Exchange:
    """What a command brings when a shell runs it."""
    words = ["bash", "-c", command.replace("curl ", f"curl -m {SECONDS} ", 1)]
    done = subprocess.run(words, capture_output=True, env={**os.environ, "CONFORMANCE_API_KEY": KEY}, check=False)
    head, _, body = done.stdout.partition(b"\r\n\r\n")
    while re.match(rb"HTTP/\S+ 1\d\d", head):  # 100 Continue
        head, _, body = body.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    status = int(lines[0].split()[1]) if lines[0].startswith("HTTP/") else None
    pairs = (line.partition(":") for line in lines[1:])
    headers = tuple((name, value.strip()) for name, _, value in pairs)
    ending = {0: Ending.COMPLETE, STALLED: Ending.TIMED_OUT}.get(done.returncode, Ending.TRUNCATED)
    error = "" if ending is Ending.COMPLETE else done.stderr.decode(errors="replace").strip()
    return Exchange(case, (Attempt(1_760_000_000.0, status, headers, (Piece(0.1, body),), ending, error, 0.2),))
