"""The catalogue of faults: each is one defect of the reference, with the check that must detect it.

A fault is in the module named after that of its check; faults that accept an invalid request are in `limits` and
`protocol`, those that refuse a valid one in `acceptance`.

To add one, write a function under `@fault(stage, check)`: it takes the value at that stage of a reply, and returns the
defective one. Its name is the fault's id, and its docstring says in one sentence what the server does wrong. `also`
names every other check, or area of checks, that may fail with it; everything else that fails is reported as
unexpected. Faults of one shape are registered with `plant`, one call each. Then run
`python bench/mutants.py NAME` to see whether the check detects the fault under each contract.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

from conformance.selftest.fault import REGISTERED, Fault

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

FAULTS: Final[dict[str, Fault]] = dict(sorted(REGISTERED.items()))

__all__ = ["FAULTS"]
