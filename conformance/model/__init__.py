"""The nouns of the project. Nothing comes in; everything else is built from these.

Out: promises (`Contract`, `Requirement`, `Limit`), what is sent (`RequestCase`, `Phase`), what came back (`Exchange`),
what it shows (`Violation`, `Verdict`), and readers without I/O: event streams, strict JSON, redaction, budgets.
Imports the standard library only, never another package of the project.
"""

from conformance.model.cases import Credential, Ending, Membership, Phase, RequestCase, Validity
from conformance.model.findings import (
    BROKEN,
    Evidence,
    Finding,
    Inconclusive,
    Observation,
    Outcome,
    Satisfied,
    Verdict,
    Violation,
)
from conformance.model.promises import (
    Ambiguity,
    Combination,
    Contract,
    Edge,
    Exclusion,
    Layer,
    Level,
    Limit,
    Parameter,
    Repair,
    Requirement,
    Source,
    Statement,
    json_types,
)

__all__ = [
    "BROKEN",
    "Ambiguity",
    "Combination",
    "Contract",
    "Credential",
    "Edge",
    "Ending",
    "Evidence",
    "Exclusion",
    "Finding",
    "Inconclusive",
    "Layer",
    "Level",
    "Limit",
    "Membership",
    "Observation",
    "Outcome",
    "Parameter",
    "Phase",
    "Repair",
    "RequestCase",
    "Requirement",
    "Satisfied",
    "Source",
    "Statement",
    "Validity",
    "Verdict",
    "Violation",
    "json_types",
]
