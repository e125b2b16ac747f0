"""specs/<provider>/ in, a `Contract` out: loading, linting, OpenAPI as JSON Schema, the validity of a request body.

Imports `model` only. Never the judge: the names of the checks that a row may bind are handed in by the caller.
"""

from conformance.contract.loader import folders, home, load, providers
from conformance.contract.yaml_file import ContractError

__all__ = ["ContractError", "folders", "home", "load", "providers"]
