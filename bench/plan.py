"""Figures of the planner: requests, tokens, coverage and planning time of each profile under each contract.

python bench/plan.py [PROVIDER …]

Each plan is made in a process of its own. Its CPU seconds are printed apart for drawing, the import of schemathesis
included, and for the rest; the import of this package and loading the contract do not count.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from multiprocessing import get_context

from conformance import plan as planning
from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks


def figures(profile: str, provider: str) -> str:
    contract = load(provider)
    options = planning.PlanOptions(model="reference", profile=profile, has_key=True)
    start = time.process_time()
    drawn = planning.draw(planning.plan_context(contract, checks(), options))
    ready = time.process_time()
    plan = planning.plan(contract, checks(), replace(options, drawn=drawn))
    end = time.process_time()
    coverage = [(strength, plan.coverage(strength)) for strength in ((2, 3) if profile == "full" else (2,))]
    covered = ", ".join(
        f"{reach.met}/{reach.of} {'pairs' if strength == 2 else 'triples'}" for strength, reach in coverage
    )
    least = min(plan.drawn_parameters.values())
    shown = f"{len(plan.drawn_cases)} drawn, each parameter {least}+ times" if profile == "full" else ""
    tokens = f"{plan.worst.prompt:>5} + {plan.worst.completion:>5} tokens"
    uncovered = f"{len(plan.uncovered)} MUSTs not covered"
    requests = f"{len(plan.cases):>4} requests {tokens}"
    seconds = f"{ready - start:.2f} s drawing + {end - ready:.2f} s planning = {end - start:.2f} s"
    return f"{profile} {provider:<12} {requests}  {covered}  {uncovered}  {shown}  {seconds}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("providers", nargs="*", default=providers())
    chosen = parser.parse_args().providers
    with get_context("spawn").Pool(1, maxtasksperchild=1) as fresh:
        for profile in planning.PROFILES:
            for provider in chosen:
                print(fresh.apply(figures, (profile, provider)), flush=True)


if __name__ == "__main__":
    main()
