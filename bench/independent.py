"""Measures the suite on a server that was written by somebody who had seen neither the suite nor its faults.

Such a server implements the contract by itself. `server.py --list` prints its variants as JSON: name, kind (`defect`,
which breaks a promise of the contract, or `legal`, which breaks none), area, depth (how many conditions must come
together), where, why. `server.py --port N [--variant NAME]` serves one; API_KEY is the key that it demands. A defect
counts as found where a requirement is broken that is not broken without it; a legal variant for which that happens is
a false alarm.

    python bench/independent.py FOLDER --profile full --jobs 2 --out measured.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError

KEY = "sk-independent-0001"
BROKEN = {"fail": "MUST", "flaky": "MUST", "warn": "SHOULD"}


def variants(server: Path) -> list[dict[str, Any]]:
    """What the server lists: name, kind, area, depth, where, why."""
    command = [sys.executable, str(server / "server.py"), "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return list(json.loads(listed.stdout))


def broken(server: Path, name: str, port: int, options: argparse.Namespace) -> dict[str, str]:
    """The broken requirements of one variant: the level by id."""
    command = [sys.executable, str(server / "server.py"), "--port", str(port)]
    if name:
        command += ["--variant", name]
    environment = {**os.environ, "API_KEY": KEY, "CONFORMANCE_API_KEY": KEY}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port)
            with tempfile.TemporaryDirectory() as out:
                run = [sys.executable, "-m", "conformance", "run", options.contract, "--profile", options.profile]
                run += ["--base-url", f"http://127.0.0.1:{port}/v1", "--model", options.model, "--no-shrink", "-q"]
                run += ["--seed", str(options.seed), "--out", out]
                subprocess.run(run, env=environment, capture_output=True, check=False)
                results = next(Path(out).rglob("results.json"), None)
                document = json.loads(results.read_text()) if results else {}
        finally:
            process.terminate()
    rows = {row["id"]: f"{row['level']}: {row['reason']}" for row in _rows(document) if row["outcome"] in BROKEN}
    if not document or document.get("incomplete"):
        rows["(incomplete)"] = str(document.get("incomplete", "no result"))
    return rows


def _rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    return list(document.get("requirements", ()))


def _wait_for(port: int) -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1)
        except HTTPError:
            return
        except (URLError, OSError):
            time.sleep(0.1)
        else:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", type=Path)
    parser.add_argument("--contract", default="openai")
    parser.add_argument("--model", default="toy")
    parser.add_argument("--profile", default="full")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--names", default="*", help="globs of the variants to try, with commas between them")
    parser.add_argument("--every", type=int, default=1, help="take every k-th variant only")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--port", type=int, default=9100)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    globs = options.names.split(",")
    listed = [row for row in variants(options.server) if any(fnmatchcase(row["name"], glob) for glob in globs)]
    listed = listed[:: options.every]
    base = broken(options.server, "", options.port, options)
    print(f"without a variant: {len(base)} broken", *(f"\n  {name}: {why}" for name, why in base.items()))

    def tried(item: tuple[int, dict[str, Any]]) -> dict[str, Any]:
        number, variant = item
        rows = broken(options.server, variant["name"], options.port + 1 + number % 500, options)
        new = {name: why for name, why in rows.items() if name not in base}
        return {**variant, "broken": new}

    with ThreadPoolExecutor(options.jobs) as pool:
        results = []
        for result in pool.map(tried, enumerate(listed)):
            results.append(result)
            levels = sorted({why.partition(":")[0] for why in result["broken"].values()})
            shown = f"{result['kind']:7} {result['name']:50} {' '.join(levels) or '-':12}"
            print(f"{shown} {', '.join(list(result['broken'])[:4])}", flush=True)
    if options.out:
        options.out.write_text(json.dumps({"base": base, "variants": results}, indent=1))
    summary(results)


def summary(results: list[dict[str, Any]]) -> None:
    """The shares by kind, depth and area."""
    for kind in ("defect", "legal"):
        groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for result in results:
            if result["kind"] == kind:
                for name in ("all", f"depth {result.get('depth')}", f"area {result.get('area')}"):
                    groups[name].append(result)
        for name, group in sorted(groups.items()):
            musts = sum(any(why.startswith("MUST") for why in result["broken"].values()) for result in group)
            shoulds = sum(
                any(why.startswith("SHOULD") for why in result["broken"].values())
                and not any(why.startswith("MUST") for why in result["broken"].values())
                for result in group
            )
            print(f"{kind} {name}: {len(group)}, broken MUST {musts}, only SHOULD {shoulds}")


if __name__ == "__main__":
    main()
