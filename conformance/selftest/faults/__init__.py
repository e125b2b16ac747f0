"""The catalogue of planted defects, one small function each, in a module for each area of checks."""

from __future__ import annotations

import importlib
import pkgutil

from conformance.selftest.fault import FAULTS

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["FAULTS"]
