"""Compute and store the covering arrays of all plans, for a target that refuses nothing.

    python bench/covering.py

Run it after contracts or factors have changed; a test says so.
"""

import json

from conformance import plan as planning
from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks
from conformance.model.budget import PROFILES
from conformance.plan import covering_array as covering
from conformance.plan import covering_rows as arrays


def arrays_of(provider, profile):
    """The arguments of the covering arrays that a plan uses."""
    calls = []
    original = arrays.array
    arrays.array = lambda *arguments: calls.append(arguments) or original(*arguments)
    try:
        planning.plan(load(provider), checks(), planning.PlanOptions(model="m", profile=profile, drawn=()))
    finally:
        arrays.array = original
    return dict.fromkeys(calls)


def main():
    calls = dict.fromkeys(call for name in providers() for profile in PROFILES for call in arrays_of(name, profile))
    stored = {
        covering.key(call): ["".join(covering.DIGITS[level] for level in row) for row in covering.make(*call)]
        for call in calls
    }
    lines = ",\n".join(f'"{name}": {json.dumps(stored[name])}' for name in sorted(stored))
    covering.FILE.write_text(f"{{\n{lines}\n}}\n", "ascii")
    print(f"{len(stored)} arrays, {sum(map(len, stored.values()))} rows")


if __name__ == "__main__":
    main()
