"""CPU time of the suite per exchange, start-up left out: planning, sending, judging, reporting.

    python bench/overhead.py [PROVIDER] [PROFILE]

The reference is served by another process, so that its own work is not counted. Start-up is what importing everything
that a run needs costs.
"""

import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SUITE = [sys.executable, "-m", "conformance"]


IMPORTS = (
    "import conformance.cli.judge, conformance.launch, conformance.planning.samples, conformance.plugin,"
    " conformance.report.page, conformance.runner, pytest, pytest_html, schemathesis;"
    " from conformance.catalogue import load; load()"
)


def cpu(command):
    """User and system seconds of one command, and the number of requests that it tells of."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    found = re.search(r"([\d,]+) requests", ended.stdout)
    return spent, int(found[1].replace(",", "")) if found else 0


def main():
    provider, profile = (*sys.argv[1:], "openai", "gate")[:2] if len(sys.argv) < 3 else sys.argv[1:3]
    server = subprocess.Popen([*SUITE, "serve", provider, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        line = ""
        while "http://" not in line:
            line = server.stdout.readline()
        url = re.search(r"http://[^\s]+", line)[0]
        os.environ["CONFORMANCE_API_KEY"] = (re.search(r"key[ :=]+(\S+)", line) or [0, "conformance"])[1]
        with tempfile.TemporaryDirectory() as folder:
            common = [provider, "--base-url", url, "--model", "reference", "--profile", profile]
            start, _ = cpu([sys.executable, "-c", IMPORTS])
            whole, count = cpu([*SUITE, "run", *common, "--out", str(Path(folder, "whole"))])
        print(f"{provider} {profile}: {count} exchanges, {whole:.2f} s CPU, {start:.2f} s of it start-up")
        print(f"{1000 * (whole - start) / max(count - 1, 1):.2f} ms CPU per exchange (the bar: 4 ms)")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
