"""A contract in, a provider that keeps it out: a core without I/O, and a thin server on a real socket.

It can be altered at the stages of `alterations`, and knows none of the alterations: faults and legal variants are in
`selftest`. Imports `model` and `contract` only, never the planner or the judge, which are tested against it.
"""

from __future__ import annotations

from conformance.reference.core import Reference, respond
from conformance.reference.messages import Portion, Request, Response
from conformance.reference.server import serve, serve_forever

__all__ = ["Portion", "Reference", "Request", "Response", "respond", "serve", "serve_forever"]
