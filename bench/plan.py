"""Figures of the planner: requests, tokens, coverage and planning time of each profile under each contract.

python bench/plan.py
"""

from __future__ import annotations

import time

from conformance import plan as planning
from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks


def figures(profile: str, provider: str) -> str:
    contract = load(provider)
    start = time.process_time()
    plan = planning.plan(contract, checks(), planning.PlanOptions(model="reference", profile=profile, has_key=True))
    seconds = time.process_time() - start
    coverage = [(strength, plan.coverage(strength)) for strength in ((2, 3) if profile == "full" else (2,))]
    covered = ", ".join(
        f"{reach.met}/{reach.of} {'pairs' if strength == 2 else 'triples'}" for strength, reach in coverage
    )
    least = min(plan.drawn_parameters.values())
    drawn = f"{len(plan.drawn_cases)} drawn, each parameter {least}+ times" if profile == "full" else ""
    tokens = f"{plan.worst.prompt:>5} + {plan.worst.completion:>5} tokens"
    uncovered = f"{len(plan.uncovered)} MUSTs not covered"
    requests = f"{len(plan.cases):>4} requests {tokens}"
    return f"{profile} {provider:<12} {requests}  {covered}  {uncovered}  {drawn}  {seconds:.2f} s"


def main() -> None:
    for profile in planning.PROFILES:
        for provider in providers():
            print(figures(profile, provider))


if __name__ == "__main__":
    main()
