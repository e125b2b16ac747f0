"""A row about all forms of a parameter passes only if each of them was accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from conformance.contract.forms import documented_forms, forms_of
from conformance.judge.checks.acceptance import accepted
from conformance.model import Contract, Requirement, Validity
from conformance.model.exchange import Exchange


def unseen_forms(requirement: Requirement, exchanges: Iterable[Exchange], contract: Contract) -> list[str]:
    """The documented forms of the parameter that no accepted request had; empty for a row that is not about forms."""
    documented = documented_forms(requirement, contract)
    if not documented:
        return []
    name = str(requirement.params["parameter"])
    bodies = (x.case.body for x in exchanges if accepted(x) and isinstance(x.case.body, Mapping))
    observed = {form for body in bodies if name in body for form in forms_of(body[name])}
    return [form for form in documented if form not in observed]


def having_form(requirement: Requirement, forms: Sequence[str], exchanges: Iterable[Exchange]) -> list[Exchange]:
    """The exchanges whose request has the parameter in one of these forms."""
    name = str(requirement.params["parameter"])
    return [
        x
        for x in exchanges
        if isinstance(x.case.body, Mapping)
        and x.case.validity is Validity.VALID
        and name in x.case.body
        and any(form in forms for form in forms_of(x.case.body[name]))
    ]


__all__ = ["having_form", "unseen_forms"]
