"""How well a run uses its connections: its time against the sum of latencies divided by the number of connections.

    python bench/efficiency.py [PROVIDER] [PROFILE...]

The reference answers after 50 ms, in another process; the suite sends 8 requests at once, without hostile requests
and without shrinking. The limit applies to the time from the first request to the last reply, with planning between
phases. Start-up, judging and reports are printed too: they take the same time for any latency (see overhead.py).

A phase depends on the replies to earlier ones, so its last requests leave connections idle: a plan of a hundred
requests in five phases takes about 16 rounds of 8, where 13 would do, and the first request alone is one of them.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conformance.contract import providers
from conformance.recording import read

LATENCY, CONNECTIONS, LIMIT = 0.05, 8, 1.25
SERVER = """
import sys
from conformance.contract import load
from conformance.reference import Reference, serve_forever
from conformance.reference.options import ReferenceOptions
provider = Reference(load(sys.argv[1]), settings=ReferenceOptions(latency=float(sys.argv[2])))
serve_forever(provider, started=lambda url: print(url, flush=True))
"""


def run(provider, profile, url, out):
    """The recording of one run, and when the command began and ended."""
    command = [sys.executable, "-m", "conformance", "run", provider, "--base-url", url, "--model", "reference"]
    command += ["--profile", profile, "--concurrency", str(CONNECTIONS), "--no-hostile", "--no-shrink", "--out", out]
    began = time.time()
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode not in {0, 3}:
        sys.exit(ended.stdout + ended.stderr)
    return read(Path(out, provider, "exchanges.ndjson")), began, time.time()


def report(provider, profile, recording, began, ended):
    """Print the figures of a run; whether it keeps to the limit."""
    attempts = [attempt for exchange in recording.exchanges for attempt in exchange.attempts]
    waited = sum(attempt.elapsed for attempt in attempts)
    first = min(attempt.started_at for attempt in attempts)
    last = max(attempt.started_at + attempt.elapsed for attempt in attempts)
    ratio = (last - first) / (waited / CONNECTIONS)
    spans, lines = 0.0, []
    for phase in recording.phases:
        of_phase = [attempt for case in phase.cases for attempt in recording.attempts.get(case.id, ())]
        if of_phase:
            end = max(attempt.started_at + attempt.elapsed for attempt in of_phase)
            span = end - min(attempt.started_at for attempt in of_phase)
            share = sum(attempt.elapsed for attempt in of_phase) / CONNECTIONS
            spans += span
            lines.append(f"    {phase.name:<10} {len(of_phase):>4} requests in {span:6.3f} s, at best {share:6.3f} s")
    between = last - first - spans
    share = waited / CONNECTIONS
    print(f"{provider} {profile}: {len(attempts)} requests, latencies {waited:.2f} s, at best {share:.2f} s")
    print(f"  conversation {last - first:.2f} s: phases {spans:.2f} s, planning between them {between:.2f} s")
    print(f"  {ratio:.2f} times the best (the limit: {LIMIT}); the phases alone {spans / share:.2f} times")
    print(f"  also: start-up {first - began:.2f} s, judging and reports {ended - last:.2f} s")
    print("\n".join(lines))
    return ratio <= LIMIT


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("provider", nargs="?", default="openai", choices=providers())
    parser.add_argument("profiles", nargs="*", choices=("gate", "full", []), metavar="PROFILE")
    options = parser.parse_args()
    provider, profiles = options.provider, options.profiles
    server = subprocess.Popen([sys.executable, "-c", SERVER, provider, str(LATENCY)], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            kept = [report(provider, name, *run(provider, name, url, folder)) for name in profiles or ("gate", "full")]
    finally:
        server.terminate()
        server.wait()
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
