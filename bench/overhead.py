"""CPU time of the suite per exchange, start-up left out: planning, sending, judging, reporting.

    python bench/overhead.py [PROVIDER] [PROFILE]

The reference is served by another process, so that its work is not counted. Start-up is what does not depend on the
requests: the interpreter, the import of all modules that a run imports, loading the contract, compiling the templates
of pages. It comes first and is printed apart; everything that `conformance run` does then counts, from drawing and
planning to the end of the process.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile

from conformance.contract import providers

SUITE = [sys.executable, "-m", "conformance"]
RUN = """
import importlib, resource, sys
for name in sys.argv.pop(1).split(","):
    try:
        importlib.import_module(name)
    except ImportError:
        pass
from conformance.judge.catalogue import load as checks
from conformance.cli import main
from conformance.contract import load
from conformance.report.page import environment

def spent():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

load(sys.argv[2], (), checks())
for name in environment().list_templates():
    environment().get_template(name)
begun = spent()
try:
    main(sys.argv[1:])
finally:
    print(f"start-up {begun:.3f} s")
    print("modules", ",".join(name for name in sys.modules if name != "__main__"))
"""
# Importing these prints something or waits for input.
LEFT_OUT = {"this", "antigravity", "readline", "pdb", "code", "cmd"}


def spent():
    """User and system seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(provider, profile, url, out):
    """Seconds of start-up and of the run, and the number of requests that it reports."""
    words = ["run", provider, "--base-url", url, "--model", "reference", "--profile", profile, "--out", out]
    modules = "conformance"
    for _ in range(2):  # the first run prints what is imported
        before = spent()
        ended = subprocess.run(
            [sys.executable, "-c", RUN, modules, *words], capture_output=True, text=True, check=False
        )
        total = spent() - before
        printed = re.search(r"^modules (.*)$", ended.stdout, re.MULTILINE)
        modules = ",".join(name for name in printed[1].split(",") if name not in LEFT_OUT) if printed else modules
    count = re.search(r"requests: ([\d,]+)", ended.stdout)
    start = re.search(r"start-up ([\d.]+) s", ended.stdout)
    if count is None or start is None:
        sys.exit(ended.stdout + ended.stderr)
    return float(start[1]), total - float(start[1]), int(count[1].replace(",", ""))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("provider", nargs="?", default="openai", choices=providers())
    parser.add_argument("profile", nargs="?", default="gate", choices=("gate", "full"))
    options = parser.parse_args()
    provider, profile = options.provider, options.profile
    server = subprocess.Popen([*SUITE, "serve", provider, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        line = next((line for line in server.stdout if "http://" in line), "")
        if not line:
            sys.exit("the reference ended before it printed its address")
        url = re.search(r"http://[0-9.:]+", line)[0]
        os.environ["CONFORMANCE_API_KEY"] = (re.search(r"key[ :=]+(\S+)", line) or [0, "sk-overhead-0001"])[1]
        with tempfile.TemporaryDirectory() as folder:
            start, seconds, count = measured(provider, profile, url, folder)
        print(f"{provider} {profile}: {count} exchanges, {seconds:.2f} s CPU after {start:.2f} s of start-up")
        print(f"{1000 * seconds / max(count, 1):.2f} ms CPU per exchange (the limit: 4 ms)")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
