"""A soak test: many runs in one process, as a nightly run of many targets makes them. Does anything grow, leak or slow?

    python bench/soak.py [--exchanges 50000] [--profile full|gate]     whole runs: planned, sent, judged, reported
    python bench/soak.py --wire [--exchanges 50000]                    one sender and one recording, nothing else

Each round is `conformance run all` with the embedded reference, so client and server are in this process, on real
sockets. After each round, memory, sockets, tasks and threads are counted. Exit code 1 if memory after the last round
is more than 10 % above that after the two warm-up rounds, if sockets, files, tasks or threads are left over, or if
the last tenth of the rounds took over 25 % more CPU time an exchange than the first.
"""

import argparse
import asyncio
import contextlib
import gc
import io
import json
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from conformance.cli import _guarded
from conformance.contract import load, providers
from conformance.model import Phase, RequestCase
from conformance.model.budget import Account, Budget
from conformance.recording import Recorder
from conformance.reference import Reference, serve
from conformance.send import Sender, Target, Watcher

WARM_UP = 2
GROWS, SLOWS = 1.10, 1.25


@dataclass
class Round:
    """What one round took, and what remained after it."""

    exchanges: int
    seconds: float
    cpu: float
    memory: float
    peak: float
    sockets: int
    files: int
    tasks: int
    threads: int

    def __str__(self):
        rate, cost = self.exchanges / self.seconds, 1000 * self.cpu / self.exchanges
        return (
            f"{self.exchanges:>7,} {self.seconds:>7.1f} s {rate:>7.0f} /s {cost:>6.2f} ms CPU"
            f" {self.memory:>7.1f} MiB (peak {self.peak:.0f}) {self.sockets:>3} sockets {self.files:>3} files"
            f" {self.tasks:>3} tasks {self.threads:>3} threads"
        )


def status(name):
    """A figure of this process in MiB, from Linux."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(line.split()[1]) / 1024


def measured(work):
    """One round of `work`, which returns the number of its exchanges."""
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    begun, cpu = time.perf_counter(), time.process_time()
    count = work()
    took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    peak = status("VmHWM")
    gc.collect()
    links = [str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.is_symlink()]
    tasks = sum(isinstance(one, asyncio.Task) and not one.done() for one in gc.get_objects())
    sockets = sum(link.startswith("socket:") for link in links)
    return Round(count, took, cpu, status("VmRSS"), peak, sockets, len(links), tasks, threading.active_count())


def whole_runs(profile, folder):
    """`conformance run all`; every target must conform."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        code = _guarded(["run", "all", f"--profile={profile}", "--quiet", f"--out={folder}"], debug=True)
    if code:
        sys.exit(f"exit code {code}\n{output.getvalue()}")
    totals = [json.loads((folder / name / "results.json").read_text("utf-8"))["totals"] for name in providers()]
    return sum(one["requests"] for one in totals)


async def over_the_wire(exchanges, folder, rounds):
    """One sender for all; plain and streamed in turn, recorded as they are completed."""
    contract = load("openai")
    bodies = [{"model": "reference", "prompt": "1, 2, 3,", "max_tokens": 8, "stream": one} for one in (False, True)]
    with (
        serve(Reference(contract, models=("reference",))) as url,
        Recorder(folder / "exchanges.ndjson", {}) as recorder,
    ):
        watcher = Watcher(recorder.started, recorder.attempted)
        async with Sender(Target(url, contract.path), Account(Budget()), watcher=watcher) as sender:
            for turn in range(rounds):
                rest = range(turn * exchanges // rounds, (turn + 1) * exchanges // rounds)
                before, begun, cpu = len(asyncio.all_tasks()), time.perf_counter(), time.process_time()
                for start in range(rest.start, rest.stop, 100):
                    cases = [
                        RequestCase(f"soak/{n}", json.dumps(bodies[n % 2]).encode(), "soak", path=contract.path)
                        for n in range(start, min(start + 100, rest.stop))
                    ]
                    made = await sender.send(Phase("soak", tuple(cases)))
                    assert [x.status for x in made] == [200] * len(cases)
                await asyncio.sleep(0.1)  # lets finished tasks go
                finished = measured(lambda: 0)
                finished.exchanges, finished.seconds = len(rest), time.perf_counter() - begun
                finished.cpu, finished.tasks = time.process_time() - cpu, len(asyncio.all_tasks()) - before
                yield finished


def rounds_of(options, folder):
    """The rounds as they end."""
    if options.wire:
        made = over_the_wire(options.exchanges, folder, 20)
        with asyncio.Runner() as runner, contextlib.suppress(StopAsyncIteration):
            while True:
                yield runner.run(anext(made))
    done = 0
    while not options.wire and done < options.exchanges:
        one = measured(lambda: whole_runs(options.profile, folder))
        done += one.exchanges
        yield one


def judged(rounds):
    """Each result as a line, and whether it is within its limit."""
    start, *_, last = rounds[WARM_UP - 1 :]
    grown = last.memory / start.memory
    tenth = max(1, len(rounds) // 10)
    early, late = rounds[WARM_UP : WARM_UP + tenth], rounds[-tenth:]
    costs = [1000 * sum(one.cpu for one in some) / sum(one.exchanges for one in some) for some in (early, late)]
    rates = [sum(one.exchanges for one in some) / sum(one.seconds for one in some) for some in (early, late)]
    left = {name: getattr(last, name) - getattr(start, name) for name in ("sockets", "files", "tasks", "threads")}
    yield f"{sum(one.exchanges for one in rounds):,} exchanges in {sum(one.seconds for one in rounds):.0f} s", True
    yield f"memory {start.memory:.1f} → {last.memory:.1f} MiB ({grown - 1:+.1%})", grown <= GROWS
    yield f"peak {max(one.peak for one in rounds):.0f} MiB", True
    more = {name: number for name, number in left.items() if number > 0}
    yield f"left over: {', '.join(f'{number} {name}' for name, number in more.items()) or 'nothing'}", not more
    yield f"first tenth {rates[0]:.0f} /s, last {rates[1]:.0f} /s", True
    yield f"first tenth {costs[0]:.2f} ms CPU an exchange, last {costs[1]:.2f}", costs[1] <= SLOWS * costs[0]


def main():
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("--exchanges", type=int, default=50_000)
    reader.add_argument("--profile", default="full", choices=["full", "gate"])
    reader.add_argument("--wire", action="store_true")
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        for one in rounds_of(reader.parse_args(), Path(folder)):
            rounds.append(one)
            print(one, flush=True)
    if len(rounds) <= WARM_UP:
        sys.exit(f"{len(rounds)} rounds are too few; expected more than {WARM_UP}: raise --exchanges")
    lines = list(judged(rounds))
    for line, fine in lines:
        print(f"{'ok   ' if fine else 'WRONG'} {line}")
    return int(not all(fine for _, fine in lines))


if __name__ == "__main__":
    sys.exit(main())
