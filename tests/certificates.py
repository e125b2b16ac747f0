"""One run under a fixed plan, certified: made once, copied and tampered with by the tests."""

from __future__ import annotations

import atexit
import json
import os
import shutil
from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from conformance import plan as planning
from conformance.certificate import dsse, examine, keys, verify
from conformance.certificate.bundle import hashes
from conformance.certificate.issue import CERTIFICATE
from conformance.certificate.statement import CERTIFIED
from conformance.cli import _guarded
from conformance.contract import load
from conformance.contract import requirement_sets as frozen
from conformance.plan import draw
from conformance.recording.canonical_json import canonical, digest, sealed
from conformance.recording.hash_chain import GENESIS, chained_line
from conformance.recording.plan_lock import NAME as LOCK
from tests.test_sixth_provider import written

CLAIMS = ("no n", "no stop", "no seed")
DAY = "2026-11-20"
NONCE = "given-by-the-certifier"
RECORDING = "exchanges.ndjson"
Record = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """A folder with everything that the three roles have."""

    home: Path

    @property
    def specs(self) -> list[Path]:
        return [self.home / "specs"]

    @property
    def bundle(self) -> Path:
        return self.home / "reports" / "madeup"

    @property
    def certificate(self) -> Path:
        return self.bundle / "certificate" / CERTIFICATE

    @property
    def key(self) -> Path:
        return self.home / "vendor.key"

    @property
    def other(self) -> Path:
        return self.home / "other.key"

    @property
    def trust(self) -> Path:
        return self.home / "trust"

    @property
    def statement(self) -> dict[str, Any]:
        return json.loads(b64decode(json.loads(self.certificate.read_bytes())["payload"]))

    @property
    def certified(self) -> dict[str, Any]:
        return self.statement["predicate"][CERTIFIED]

    def records(self) -> list[Record]:
        lines = (self.bundle / RECORDING).read_bytes().splitlines()
        return [{name: value for name, value in json.loads(line).items() if name != "chain"} for line in lines]

    def rechained(self, records: list[Record]) -> None:
        """Write records with a chain that holds: somebody who knows the format cheats."""
        last, lines = GENESIS, []
        for number, record in enumerate(records, 1):
            if record["record"] == "footer":
                record = {**record, "records": number, "before": last}
            line, last = chained_line(record, last)
            lines.append(line)
        (self.bundle / RECORDING).write_bytes(b"".join(lines))

    def resealed(self, edit: Callable[[dict[str, Any]], None]) -> None:
        """Change the plan, and make it give the hash that it now has."""
        plan = json.loads((self.bundle / LOCK).read_bytes())
        edit(plan)
        (self.bundle / LOCK).write_bytes(canonical(sealed(plan)) + b"\n")

    def replanned(
        self,
        edit: Callable[[dict[str, Any]], None] = lambda _: None,
        change: Callable[[list[Record]], None] | None = None,
    ) -> None:
        """Change the plan as if it had been made so, let the recording name it, and sign both."""
        self.resealed(edit)
        plan = json.loads((self.bundle / LOCK).read_bytes())
        records = self.records()
        records[0] |= {"plan": {"sha256": plan["sha256"], "nonce": plan["nonce"]}}
        records[0] |= {name: plan[name] for name in ("profile", "seed", "claims")}
        if change is not None:
            change(records)
        self.rechained(records)

        def as_planned(statement: dict[str, Any]) -> None:
            certified = statement["predicate"][CERTIFIED]
            certified |= {name: plan[name] for name in ("suite", "contract", "requirements", "claims")}
            certified["plan"] |= {name: plan[name] for name in ("sha256", "nonce", "seed", "profile")}

        self.resigned(as_planned)

    def signed_as_it_is(self) -> None:
        """Sign the hashes of the files, and nothing else that they hold."""
        last = self.certified["evidence"]["last"]
        records = self.bundle / RECORDING
        content = records.read_bytes()
        records.unlink()  # `resigned` reads what is there
        try:
            self.resigned(lambda statement: statement["subject"].append(_subject(RECORDING, content)))
        finally:
            records.write_bytes(content)
        assert self.certified["evidence"]["last"] == last

    def resigned(self, edit: Callable[[dict[str, Any]], None] | None = None, key: Path | None = None) -> None:
        """Sign what the bundle holds now, without asking whether it is true."""
        statement, private = self.statement, keys.load(key or self.key)
        present = hashes(self.bundle)
        statement["subject"] = [{"name": name, "digest": {"sha256": present[name]}} for name in sorted(present)]
        certified = statement["predicate"][CERTIFIED]
        certified |= {"keyid": private.public.id, "public_key": str(private.public)}
        if (self.bundle / RECORDING).exists():
            last = self.records()[-1]
            certified["evidence"] |= {"last": last["before"]} if last["record"] == "footer" else {}
        if edit is not None:
            edit(statement)
        self.certificate.write_bytes(dsse.written(dsse.sign(canonical(statement), private)))
        for beside in self.certificate.parent.iterdir():
            if beside != self.certificate:
                beside.unlink()


def _subject(name: str, content: bytes) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": digest(content)}}


def call(*arguments: Any) -> int:
    return _guarded([str(argument) for argument in arguments], debug=False)


@cache
def certified() -> Case:
    """Plan, run, certify, as a user would. Nobody may change what is in it: see `copied`."""
    folder = TemporaryDirectory(prefix="certified-")
    atexit.register(folder.cleanup)
    made = Case(Path(folder.name))
    made.specs[0].mkdir()
    written(made.specs[0])
    frozen.write(frozen.freeze(load("madeup", made.specs), DAY), made.specs)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(StringIO()):
        for name in [name for name in os.environ if name.startswith("CONFORMANCE_")]:
            patch.delenv(name)
        there = ("--specs", made.specs[0])
        claims = [word for claim in CLAIMS for word in ("--claim", claim)]
        lock = made.home / LOCK
        planned = ("plan", "madeup", *there, *claims, "--profile", "certify", "--lock", lock, "--nonce", NONCE)
        assert call(*planned) == 0
        assert call("run", "madeup", *there, "--plan", lock, "--out", made.home / "reports", "-q") == 0
        assert call("keygen", made.key, "--name", "The vendor") == 0
        assert call("keygen", made.other) == 0
        assert call("certify", made.bundle, "--key", made.key, *there) == 0
    shutil.copy(f"{made.key}.pub", made.trust)
    return made


def copied(folder: Path) -> Case:
    """A copy that a test may tamper with."""
    shutil.copytree(certified().home, folder / "copy")
    return Case(folder / "copy")


_examined: dict[tuple[Any, ...], examine.Examined] = {}
_drawn: dict[tuple[Any, ...], Any] = {}


def examine_each_bundle_once(patch: pytest.MonkeyPatch) -> None:
    """Let `verify` examine a bundle of the same bytes once, and draw the bodies of the same plan once."""

    def examined(folder: Path, specs: Sequence[Path]) -> examine.Examined:
        key = (*sorted(hashes(folder).items()), *specs_in(specs))
        if key not in _examined:
            _examined[key] = examine.examine(folder, specs)
        return _examined[key]

    def drawn(context: planning.PlanContext) -> Any:
        key = (
            context.contract.sha256, context.model, context.full, context.seed, context.without, context.has_key,
            context.hostile, context.allow_large,
        )  # fmt: skip
        if key not in _drawn:
            _drawn[key] = draw(context)
        return _drawn[key]

    patch.setattr(verify, "examine", examined)
    patch.setattr(planning, "draw", drawn)


def specs_in(folders: Sequence[Path]) -> list[str]:
    """The hashes of all files in these folders."""
    return [digest(path.read_bytes()) for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
