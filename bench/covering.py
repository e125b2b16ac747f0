"""Keep the covering arrays of all plans anew, as they are where a target refuses nothing.

    python bench/covering.py

To be run where contracts or dimensions have changed; a test says so.
"""

import json

from conformance import plan as planning
from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks
from conformance.model.budget import PROFILES
from conformance.plan import covering_array as covering
from conformance.plan import covering_rows as arrays


def asked_for(provider, profile):
    """The arrays that a plan rests on."""
    asked = []
    usual = arrays.array
    arrays.array = lambda *one: asked.append(one) or usual(*one)
    try:
        planning.plan(load(provider), checks(), planning.PlanOptions(model="m", profile=profile, drawn=()))
    finally:
        arrays.array = usual
    return dict.fromkeys(asked)


def main():
    every = dict.fromkeys(one for name in providers() for profile in PROFILES for one in asked_for(name, profile))
    kept = {
        covering.key(one): ["".join(covering.DIGITS[level] for level in row) for row in covering.make(*one)]
        for one in every
    }
    lines = ",\n".join(f'"{name}": {json.dumps(kept[name])}' for name in sorted(kept))
    covering.FILE.write_text(f"{{\n{lines}\n}}\n", "ascii")
    print(f"{len(kept)} arrays, {sum(map(len, kept.values()))} rows")


if __name__ == "__main__":
    main()
