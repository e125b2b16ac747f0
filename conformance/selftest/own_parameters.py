"""Parameters that exactly one shipped contract documents, so that faults can be planted in them by what they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache

from conformance.contract import load, providers
from conformance.contract.parameters import traits
from conformance.model import Contract, Parameter
from conformance.model.parameter_traits import ParameterTraits, Role


@cache
def own_parameters() -> Mapping[str, tuple[Parameter, ParameterTraits]]:
    """Each with its traits, by name."""
    contracts = [load(provider) for provider in providers()]
    documented = Counter(name for contract in contracts for name in contract.parameters)
    return {
        name: (parameter, traits(contract, name))
        for contract in contracts
        for name, parameter in contract.parameters.items()
        if documented[name] == 1
    }


def with_role(role: Role) -> tuple[str, ...]:
    """The names of those with a role."""
    return tuple(name for name, (_, known) in own_parameters().items() if known.role is role)


def has_role(role: Role) -> Callable[[Contract], bool]:
    """Only where the contract documents a parameter with this role."""
    return lambda contract: bool(contract.by_role(role))


__all__ = ["has_role", "own_parameters", "with_role"]
