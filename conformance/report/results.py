"""A run → results.json, the public interface that every other output is made from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from conformance import __version__
from conformance.config.waivers import Waiver
from conformance.judge.catalogue import load
from conformance.judge.causes import causes
from conformance.model import Credential
from conformance.model.budget import CERTIFY, PROFILES, planned_as
from conformance.model.clock import today
from conformance.plan import PlanOptions, plan_context
from conformance.plan.input_classes import exercised
from conformance.report import drawn
from conformance.report.causes import attributed, entries
from conformance.report.replay_commands import Destination, curl, python
from conformance.report.tally import VERDICTS, exit_code, index, score
from conformance.report.waivers import apply
from conformance.run.reproducer import SHRINK, evidence_of_reproducer, readable_first, reproduction_caveat
from conformance.selftest.mutation_score import mutation_score

if TYPE_CHECKING:
    from conformance.model import Contract, Evidence, RequestCase, Source, Verdict
    from conformance.model.exchange import Exchange
    from conformance.run import Run

SCHEMA: Final = "conformance-results/1"
ADDED: Final = "added later"
LAST: Final = (True, (1 << 30, 0))
"""The sort key of evidence whose request was not recorded; evidence begins with the smallest request."""


def schema() -> dict[str, Any]:
    """The JSON Schema of results.json."""
    loaded: dict[str, Any] = json.loads(files(__package__).joinpath("results.schema.json").read_text("utf-8"))
    return loaded


def document(
    run: Run,
    *,
    strict: bool = False,
    waivers: Sequence[Waiver] = (),
    day: date | None = None,
    folder: str = "",
    send: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The content of results.json: everything about a run except the bytes, which are in the recording.

    Waivers are valid or expired as of `day`; None is today. `folder` is where the report is written, `send` has the
    options by which `conformance send` finds the recording and the contract.
    """
    exchanges = {exchange.case.id: exchange for exchange in run.exchanges}
    contract = run.contract
    target = {**run.target.described(), "path": contract.path}
    to = Destination.of(target, folder)
    judged = [_row(verdict, to, exchanges, run) for verdict in run.verdicts]
    marked, faults = apply(judged, waivers, run.target.name, day or today())
    run_causes = causes(contract, run.verdicts, (x for x in run.exchanges if x.case.origin != SHRINK))
    rows = attributed(marked, run_causes)
    code = exit_code(rows, run.incomplete, strict=strict, waiver_faults=faults)
    return {
        "schema": SCHEMA,
        "provider": contract.provider,
        "title": contract.title,
        "suite_version": __version__,
        "contract_revision": contract.revision,
        "contract_sha256": contract.sha256,
        "document": {name: value for name, value in asdict(contract.document).items() if value},
        "requirement_set": dict(contract.frozen) or None,
        "plan_sha256": run.plan_sha256,
        "seed": run.seed,
        "profile": run.profile,
        "target": target,
        **({"send": dict(send)} if send else {}),
        **({"recorded": dict(run.recorded)} if run.recorded else {}),
        "claims": list(run.claims),
        "started_at": datetime.fromtimestamp(run.started_at, UTC).isoformat(timespec="seconds"),
        "duration_s": round(run.duration_s, 3),
        "strict": strict,
        "verdict": VERDICTS[code],
        "exit_code": int(code),
        "incomplete": list(run.incomplete),
        "waiver_faults": faults,
        "mutation_score": mutation_score(contract.provider, run.profile),
        "totals": dict(run.totals),
        "drawn": drawn.counted(run),
        **({} if run.recorded else {"classes": _classes(run)}),  # others did not choose requests to cover classes
        "index": index(rows),
        "score": score(rows),
        "causes": entries(run_causes, rows),
        "requirements": rows,
    }


def _classes(run: Run) -> dict[str, int]:
    """How many classes of the input model the requests of a run had, of all that a full run sends."""
    cases = [exchange.case for exchange in run.exchanges]
    options = PlanOptions(
        model=run.target.model,
        # traffic that this suite did not send has no profile; the classes are those of `full` in any case
        profile=planned_as(run.profile) if run.profile in (*PROFILES, CERTIFY) else "full",
        seed=run.seed,
        claims=[claim for claim in run.claims if claim.removeprefix("no ") in run.contract.parameters],
        hostile=any(case.hostile for case in cases),
        has_key=any(case.credential is not Credential.KEY for case in cases),
    )
    reach = exercised(plan_context(run.contract, load(), options), cases)
    return {"exercised": reach.met, "of": len(reach.wanted)}


def _source(source: Source) -> dict[str, str]:
    quote = {"quote": source.quote} if source.quote else {}
    return {"at": source.at, "page": source.page, **quote}


def _row(verdict: Verdict, to: Destination, exchanges: Mapping[str, Exchange], run: Run) -> dict[str, Any]:
    requirement = verdict.requirement
    cases = {item.case: exchanges[item.case].case for item in verdict.evidence if item.case in exchanges}
    least = run.smallest.get(requirement.id, "")
    check = load().get(requirement.check)
    return {
        "id": requirement.id,
        "area": requirement.area,
        "level": requirement.level.value,
        "layer": requirement.layer.value,
        "outcome": verdict.outcome.value,
        "reason": verdict.reason,
        "check": requirement.check,
        "promise": requirement.promise,
        "why": check.why if check else "",
        "fix": requirement.fix or (check.fix if check else ""),
        "source": _source(requirement.source),
        "examined": verdict.examined,
        "exchanges": verdict.exchanges,
        "violations": verdict.violations,
        "incomplete": verdict.incomplete and requirement.scored,
        "cause": None,
        "blocked_by": None,
        "waiver": None,
        "not_scored": None if requirement.scored else ADDED,
        "evidence": [
            {
                "case": item.case,
                "at": item.at,
                "message": item.message,
                "curl": curl(cases[item.case], to) if item.case in cases else "",
                **_repeats(verdict, item.case, exchanges, run.contract),
            }
            for item in sorted(
                verdict.evidence, key=lambda item: readable_first(cases[item.case]) if item.case in cases else LAST
            )
        ],
        "smallest": None
        if least not in exchanges
        else {
            **_smallest(exchanges[least].case, to, evidence_of_reproducer(run.contract, verdict, least, exchanges)),
            **_repeats(verdict, least, exchanges, run.contract),
        },
        "observations": [
            {"subject": item.subject, "value": item.value, "at": item.at} for item in verdict.observations
        ],
    }


def _repeats(verdict: Verdict, case: str, exchanges: Mapping[str, Exchange], contract: Contract) -> dict[str, str]:
    """Why sending a request once need not show the failure again; nothing where it does."""
    reason = reproduction_caveat(contract, verdict, exchanges[case], exchanges) if case in exchanges else ""
    return {"repeats": reason} if reason else {}


def _smallest(case: RequestCase, to: Destination, evidence: Evidence | None) -> dict[str, str]:
    """The smallest request, as commands to copy, and what it showed."""
    pasted = {"curl": curl(case, to), "python": python(case, to)}
    return {"case": case.id, **pasted, **({"at": evidence.at, "message": evidence.message} if evidence else {})}


def dumps(results: Mapping[str, Any]) -> str:
    """The document as ASCII JSON with one cause and one requirement a line, so that runs can be compared by line."""
    line_by_line = ("causes", "requirements")
    head = {name: value for name, value in results.items() if name not in line_by_line}
    parts = [
        f' "{name}": [\n  {rows}\n ]'
        for name in line_by_line
        if (rows := ",\n  ".join(map(json.dumps, results.get(name, ())))) or name in results
    ]
    return json.dumps(head, indent=1)[:-2] + ",\n" + ",\n".join(parts) + "\n}\n"


def read(path: Path) -> dict[str, Any]:
    """A results.json from disk; ValueError says what is wrong and what to do."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        problem = getattr(error, "strerror", None) or error
        raise ValueError(
            f"{path} cannot be read ({problem}); give a results.json that `conformance run` wrote"
        ) from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        actual = json.dumps(document.get("schema")) if isinstance(document, dict) else "missing"
        raise ValueError(f'{path}: schema is {actual}; expected "{SCHEMA}": write it again with this version')
    expected = schema()
    missing = set(expected["required"]) - document.keys()
    if not missing:
        if not isinstance(document["requirements"], list) or not all(
            isinstance(row, dict) for row in document["requirements"]
        ):
            raise ValueError(f"{path}: requirements is not a list of objects; give an unedited results.json")
        required_of_row = set(expected["$defs"]["requirement"]["required"])
        missing = {name for row in document["requirements"] for name in required_of_row - row.keys()}
    if missing:
        raise ValueError(f"{path} lacks {', '.join(sorted(missing))}; give an unedited results.json")
    return document


def checked(path: Path) -> dict[str, Any]:
    """A results.json from disk, validated against its schema, for files from others."""
    document = read(path)
    error = best_match(Draft202012Validator(schema()).iter_errors(document))
    if error is not None:
        problem = error.message if len(error.message) < 200 else f"{error.message[:200]}…"
        raise ValueError(f"{path}: {error.json_path}: {problem}; give an unedited results.json")
    return document
