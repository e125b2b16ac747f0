"""A provider that keeps any contract, and breaks it on request: what the suite is proved against."""

from __future__ import annotations

from conformance.reference.core import Reference, respond
from conformance.reference.fault import Fault
from conformance.reference.faults import FAULTS
from conformance.reference.message import Portion, Request, Response
from conformance.reference.oddities import ODDITIES
from conformance.reference.oddity import Oddity
from conformance.reference.play import exchange, play
from conformance.reference.server import serve, serve_forever

__all__ = [
    "FAULTS", "ODDITIES", "Fault", "Oddity", "Portion", "Reference", "Request", "Response", "exchange", "play",
    "respond", "serve", "serve_forever",
]  # fmt: skip
