"""The catalogue of legal variants: unusual behaviour that a contract allows, in a module for each part of a reply.

To add one, write a function under `@legal_variant(stage)`: it takes the value at that stage of a reply, and returns
another legal one. Its name is the variant's id, and its docstring says in one sentence what is unusual. `fits` tells
which contracts allow it. A variant that is only an option of the reference is one call in `options`. Then run
`python bench/mutants.py NAME`: no check may fail.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Final

from conformance.selftest.legal_variant import REGISTERED, LegalVariant

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

LEGAL_VARIANTS: Final[dict[str, LegalVariant]] = dict(sorted(REGISTERED.items()))

__all__ = ["LEGAL_VARIANTS"]
