"""The catalogue of legal oddities, in a module for each layer of a reply."""

from __future__ import annotations

import importlib
import pkgutil

from conformance.selftest.legal_variant import LEGAL_VARIANTS

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")

__all__ = ["LEGAL_VARIANTS"]
