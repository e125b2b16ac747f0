"""Figures of the planner: what each profile sends, what it reaches, how long planning takes, which faults it finds.

python bench/plan.py                          requests, tokens, coverage and planning time, all contracts
python bench/plan.py --faults gate openai     share of the reference's faults that a profile finds on a contract
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

from conformance import plan as planning
from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks
from conformance.model.budget import usual
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.faults import FAULTS
from conformance.selftest.in_process_run import run_in_process

MODEL = "reference"


def figures(profile: str, provider: str) -> str:
    contract = load(provider)
    begun = time.process_time()
    plan = planning.plan(contract, checks(), planning.PlanOptions(model=MODEL, profile=profile, has_key=True))
    took = time.process_time() - begun
    strengths = (2, 3) if profile == "full" else (2,)
    met = [(strength, plan.coverage(strength)) for strength in strengths]
    reach = ", ".join(f"{one.met}/{one.of} {'pairs' if strength == 2 else 'triples'}" for strength, one in met)
    often = min(plan.drawn_parameters.values())
    drawn = f"{len(plan.drawn_cases)} drawn, each parameter {often}+ times" if profile == "full" else ""
    tokens = f"{plan.worst.prompt:>5} + {plan.worst.completion:>5} tokens"
    owed = f"{len(plan.uncovered)} MUST unseen"
    return f"{profile} {provider:<12} {len(plan.cases):>4} requests {tokens}  {reach}  {owed}  {drawn}  {took:.2f} s"


def survivors(profile: str, provider: str) -> Iterator[tuple[str, bool]]:
    """Each fault that applies to the contract, and whether its primary check noticed it."""
    contract = load(provider)
    drawn = planning.draw(planning.plan_context(contract, checks(), planning.PlanOptions(model=MODEL, profile=profile)))
    options = planning.PlanOptions(model=MODEL, profile=profile, has_key=True, drawn=drawn)
    for name, fault in FAULTS.items():
        if fault.applies(contract):
            plan = planning.phases(contract, checks(), options)
            bent = altered_reference(contract, key="key", faults=(fault,))
            yield name, fault.check in run_in_process(bent, plan, attempts=usual(profile).requests).checks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--faults", nargs=2, metavar=("PROFILE", "PROVIDER"))
    told = parser.parse_args()
    if not told.faults:
        for profile in planning.PROFILES:
            for provider in providers():
                print(figures(profile, provider))
        return
    found = dict(survivors(*told.faults))
    share = sum(found.values()) / max(len(found), 1)
    print(f"{sum(found.values())} of {len(found)} faults found, {share:.1%}; survivors:")
    for name in (name for name, killed in found.items() if not killed):
        print(f"  {name}  ({FAULTS[name].check})")


if __name__ == "__main__":
    main()
