"""How well a run uses its lanes: its time against the latencies that it had to wait for, shared by the lanes.

    python bench/efficiency.py [PROVIDER] [PROFILE...]

The reference answers after 50 ms, in a process of its own; the suite sends 8 requests at once, without hostile
requests and without shrinking. The bar is for the conversation, from the first request to the last reply, planning
between waves included. Start-up, and what judging and reports take afterwards, are told beside it: they are the same
for any latency (see overhead.py).

A wave rests on the replies to those before it, so its last requests leave lanes idle: a plan in five waves of a
hundred requests takes about 16 rounds of 8 where 13 would do, and a probe that goes alone is one of them.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from conformance.contract import providers
from conformance.recording import read

LATENCY, LANES, BAR = 0.05, 8, 1.25
SERVER = """
import sys
from conformance.contract import load
from conformance.reference import Reference, serve_forever
from conformance.reference.options import ReferenceOptions
provider = Reference(load(sys.argv[1]), settings=ReferenceOptions(latency=float(sys.argv[2])))
serve_forever(provider, started=lambda url: print(url, flush=True))
"""


def run(provider, profile, url, out):
    """The recording of one run, and when the command ended."""
    command = [sys.executable, "-m", "conformance", "run", provider, "--base-url", url, "--model", "reference"]
    command += ["--profile", profile, "--concurrency", str(LANES), "--no-hostile", "--no-shrink", "--out", out]
    began = time.time()
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode not in {0, 3}:
        sys.exit(ended.stdout + ended.stderr)
    return read(Path(out, provider, "exchanges.ndjson")), began, time.time()


def told(provider, profile, recording, began, ended):
    """Figures of a run, and whether it keeps to the bar."""
    tried = [attempt for x in recording.exchanges for attempt in x.attempts]
    waited = sum(one.elapsed for one in tried)
    first, last = min(one.started_at for one in tried), max(one.started_at + one.elapsed for one in tried)
    ratio = (last - first) / (waited / LANES)
    spans, lines = 0.0, []
    for phase in recording.phases:
        times = [one for case in phase.cases for one in recording.attempts.get(case.id, ())]
        if times:
            span = max(one.started_at + one.elapsed for one in times) - min(one.started_at for one in times)
            share = sum(one.elapsed for one in times) / LANES
            spans += span
            lines.append(f"    {phase.name:<10} {len(times):>4} requests in {span:6.3f} s, a share of {share:6.3f} s")
    between = last - first - spans
    print(f"{provider} {profile}: {len(tried)} requests, latencies {waited:.2f} s, a lane's share {waited / LANES:.2f}")
    print(f"  conversation {last - first:.2f} s: waves {spans:.2f} s, planning between them {between:.2f} s")
    print(f"  {ratio:.2f} times the share (the bar: {BAR}); the waves alone {spans / (waited / LANES):.2f} times")
    print(f"  besides: start-up {first - began:.2f} s, judging and reports {ended - last:.2f} s")
    print("\n".join(lines))
    return ratio <= BAR


def main():
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("provider", nargs="?", default="openai", choices=providers())
    asked.add_argument("profiles", nargs="*", choices=("gate", "full", []), metavar="PROFILE")
    given = asked.parse_args()
    provider, profiles = given.provider, given.profiles
    server = subprocess.Popen([sys.executable, "-c", SERVER, provider, str(LATENCY)], stdout=subprocess.PIPE, text=True)
    try:
        url = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            kept = [told(provider, one, *run(provider, one, url, folder)) for one in profiles or ("gate", "full")]
    finally:
        server.terminate()
        server.wait()
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
