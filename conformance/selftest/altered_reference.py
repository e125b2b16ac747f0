"""The reference provider with faults or legal variants built in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from conformance.model import Contract
from conformance.reference import Reference
from conformance.reference.options import ReferenceOptions
from conformance.selftest.fault import Fault
from conformance.selftest.legal_variant import LegalVariant


def altered_reference(
    contract: Contract,
    key: str | None = None,
    *,
    faults: Sequence[Fault] = (),
    variants: Sequence[LegalVariant] = (),
    **more: Any,
) -> Reference:
    """A reference that departs from its contract exactly where these say; `more` are further fields of `Reference`.

    Faults are applied first: a legal variant also applies to a broken reply.
    """
    plain = Reference(contract, key, **more)
    settings: ReferenceOptions = plain.settings
    model = plain.model
    for variant in variants:
        settings = replace(settings, **variant.settings)
        model = replace(model, **variant.model)
    changes = (*(fault.alteration for fault in faults), *(one for odd in variants for one in odd.alterations))
    return replace(plain, settings=settings, model=model, changes=changes)
