"""The reference: a provider that keeps any contract, as a core without I/O and a thin server on a real socket.

`core.respond` takes a request and returns the response that the contract asks for: it checks the request
(`request_validation`), reads its parameters (`generation_parameters`), generates texts with a small deterministic model
(`language_model`, `sampling`, `generation`), and builds documents (`responses`, `schema_instance`). `ReferenceOptions`
choose among what a contract leaves open. The stages in `alterations` are where the self-test builds in faults and legal
variants; the reference knows none of them. It imports `model` and `contract` only, never the planner or the judge,
which are tested against it.
"""

from __future__ import annotations

from conformance.reference.core import Reference, respond
from conformance.reference.messages import Portion, Request, Response
from conformance.reference.server import serve, serve_forever

__all__ = ["Portion", "Reference", "Request", "Response", "respond", "serve", "serve_forever"]
