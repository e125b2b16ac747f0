"""CPU time of the suite per exchange, start-up left out: planning, sending, judging, reporting.

    python bench/overhead.py [PROVIDER] [PROFILE]

The reference is served by another process, so that its own work is not counted. Start-up is what is the same whatever
is sent: the interpreter, importing all modules that a run was seen to import, loading the contract, compiling the
templates of pages. It is done first and told apart; all that `conformance run` does then counts, from drawing and
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

checks()
load(sys.argv[2])
for name in environment().list_templates():
    environment().get_template(name)
begun = spent()
try:
    main(sys.argv[1:])
finally:
    print(f"start-up {begun:.3f} s")
    print("modules", ",".join(name for name in sys.modules if name != "__main__"))
"""
# Importing these shows something or waits for somebody.
LEFT_OUT = {"this", "antigravity", "readline", "pdb", "code", "cmd"}


def spent():
    """User and system seconds of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measured(provider, profile, url, out):
    """Seconds of start-up and of the run, and the number of requests that it tells of."""
    words = ["run", provider, "--base-url", url, "--model", "reference", "--profile", profile, "--out", out]
    modules = "conformance"
    for _ in range(2):  # the first tells what is imported
        before = spent()
        ended = subprocess.run(
            [sys.executable, "-c", RUN, modules, *words], capture_output=True, text=True, check=False
        )
        whole = spent() - before
        told = re.search(r"^modules (.*)$", ended.stdout, re.MULTILINE)
        modules = ",".join(name for name in told[1].split(",") if name not in LEFT_OUT) if told else modules
    count = re.search(r"([\d,]+) requests", ended.stdout)
    start = re.search(r"start-up ([\d.]+) s", ended.stdout)
    if count is None or start is None:
        sys.exit(ended.stdout + ended.stderr)
    return float(start[1]), whole - float(start[1]), int(count[1].replace(",", ""))


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("provider", nargs="?", default="openai", choices=providers())
    asked.add_argument("profile", nargs="?", default="gate", choices=("gate", "full"))
    given = asked.parse_args()
    provider, profile = given.provider, given.profile
    server = subprocess.Popen([*SUITE, "serve", provider, "--port", "0"], stdout=subprocess.PIPE, text=True)
    try:
        line = next((one for one in server.stdout if "http://" in one), "")
        if not line:
            sys.exit("the reference provider ended before it told its address")
        url = re.search(r"http://[0-9.:]+", line)[0]
        os.environ["CONFORMANCE_API_KEY"] = (re.search(r"key[ :=]+(\S+)", line) or [0, "conformance"])[1]
        with tempfile.TemporaryDirectory() as folder:
            start, whole, count = measured(provider, profile, url, folder)
        print(f"{provider} {profile}: {count} exchanges, {whole:.2f} s CPU after {start:.2f} s of start-up")
        print(f"{1000 * whole / max(count, 1):.2f} ms CPU per exchange (the bar: 4 ms)")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
