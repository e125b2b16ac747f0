"""The reference with faults or legal variants built in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conformance.model import Contract
from conformance.reference import Reference
from conformance.selftest.fault import Fault
from conformance.selftest.legal_variant import LegalVariant


def altered_reference(
    contract: Contract,
    key: str | None = None,
    *,
    faults: Sequence[Fault] = (),
    variants: Sequence[LegalVariant] = (),
    **fields: Any,
) -> Reference:
    """A reference that departs from its contract exactly as these say; `fields` are further fields of `Reference`.

    Faults are applied first, so that a legal variant also applies to a faulty reply.
    """
    honest = Reference(contract, key, **fields)
    settings, model = honest.settings, honest.model
    for variant in variants:
        settings = replace(settings, **variant.settings)
        model = replace(model, **variant.model)
    alterations = [fault.alteration for fault in faults]
    alterations += [alteration for variant in variants for alteration in variant.alterations]
    return replace(honest, settings=settings, model=model, alterations=tuple(alterations))
