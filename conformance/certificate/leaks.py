"""Secrets in what is about to be shown to others: the canary of the run, and credentials by the name of their header.

The canary is the wrong key that the run sends to see it refused. It is masked as the right one is, so where it is
found, the right one may stand as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from conformance.certificate.reasons import Rejection
from conformance.model.exchange import Exchange
from conformance.model.redaction import is_secret
from conformance.send import Redaction


def leaks(files: Mapping[str, Path], exchanges: Iterable[Exchange], secrets: Iterable[str]) -> Iterator[Rejection]:
    """Where one of the secrets stands in any form, compressed replies included, and where a credential was kept."""
    redaction = Redaction(secrets)
    for name, path in files.items():
        data = path.read_bytes() if path.is_file() else b""
        if redaction.data(data) != data:
            yield Rejection(
                "SECRET_FOUND", f"{name} holds the canary or the key; publish nothing of it, change the key"
            )
    for x in exchanges:
        kept = [name for name, _ in x.case.headers if is_secret(name)]
        if kept:
            yield Rejection(
                "SECRET_FOUND", f"the request {x.case.id} holds the header {kept[0]}; change that credential"
            )
        if any(redaction.attempt(one) != one for one in x.attempts):
            yield Rejection("SECRET_FOUND", f"a reply to {x.case.id} holds the canary or the key; change the key")
