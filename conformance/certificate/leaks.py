"""Secrets in files that will be published: the canary of the run, and credentials by the name of their header field.

The canary is the wrong key that the run sends, expecting a refusal. It is redacted as the right key is, so wherever it
is found, the right key may be found as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from conformance.certificate.reasons import Rejection
from conformance.model.exchange import Exchange
from conformance.model.redaction import is_secret
from conformance.send import Redaction


def leaks(files: Mapping[str, Path], exchanges: Iterable[Exchange], secrets: Iterable[str]) -> Iterator[Rejection]:
    """Where a secret occurs in any form, including compressed responses, and where a credential was recorded."""
    redaction = Redaction(secrets)
    for name, path in files.items():
        data = path.read_bytes() if path.is_file() else b""
        if redaction.data(data) != data:
            yield Rejection(
                "SECRET_FOUND", f"{name} contains the canary or the key; do not publish it, and change the key"
            )
    for exchange in exchanges:
        case = exchange.case
        credentials = [name for name, value in case.headers if is_secret(name, value)]
        if credentials:
            yield Rejection(
                "SECRET_FOUND", f"the request {case.id} contains the header {credentials[0]}; change that credential"
            )
        if any(redaction.attempt(attempt) != attempt for attempt in exchange.attempts):
            yield Rejection("SECRET_FOUND", f"a reply to {case.id} contains the canary or the key; change the key")
