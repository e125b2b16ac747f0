"""Preflight: if the first reply does not come from an API, nothing else is sent, and one line says why."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.judge.catalogue import show
from conformance.model import Credential, Phase, RequestCase, Validity
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING
from conformance.send import Redaction, Target


def first_case(phase: Phase) -> RequestCase | None:
    """The case that is sent before all others: valid, with the key, and read to its end."""
    suitable = (
        case
        for case in phase.cases
        if case.validity is Validity.VALID
        and case.credential is Credential.KEY
        and case.hang_up_after is None
        and not case.hostile
        and isinstance(case.body, Mapping)
    )
    return next(suitable, None)


def obstacle(x: Exchange, target: Target) -> str:
    """Why it is useless to send anything else; empty where the target answers as an API does."""
    url = Redaction(target.secrets).text(target.url(x.case))
    if x.status is None:
        attempts = f" in {len(x.attempts)} attempts" if len(x.attempts) > 1 else ""
        return f"{target.base_url} gave no reply{attempts}: {x.last.error}; {_advice(x.last.error)}"
    seen = f"HTTP {x.status} for {x.case.method} {url}"
    if 300 <= x.status < 400:
        location = show(x.header("location") or "nowhere")
        return f"{seen}, a redirect to {location}; it is not followed, to keep the key from other hosts: see --base-url"
    if _is_html(x):
        return (
            f"{seen} with HTML, {show(x.content[:60])}; expected JSON: check that --base-url is the address of the API"
        )
    if x.status in {401, 403}:
        key = "although a key was sent" if target.key else "and no key was sent"
        return f"{seen}, {key}{_message(x)}; set CONFORMANCE_API_KEY, or name another variable with --api-key-env"
    if x.status in {404, 405}:
        return f"{seen}{_message(x)}; check --base-url and --model"
    if x.status in {429, 502, 503, 504}:
        return f"{seen} after {len(x.attempts)} attempts{_message(x)}; the target is overloaded or down: try later"
    return ""


def _advice(error: str) -> str:
    """What to do about a connection that failed."""
    if "CERTIFICATE_VERIFY_FAILED" in error:
        return "name the certificate authority's file with SSL_CERT_FILE"
    if "WRONG_VERSION_NUMBER" in error:
        return "the server does not speak TLS: check whether --base-url should begin with http://"
    return "check that it runs, and check --base-url"


def _is_html(x: Exchange) -> bool:
    return x.media_type in {"text/html", "application/xhtml+xml"} or (
        x.json is MISSING and x.content.lstrip()[:1] == b"<"
    )


def _message(x: Exchange) -> str:
    """The message of an error body, as the end of a sentence."""
    body = x.json
    error = body.get("error", body) if isinstance(body, Mapping) else body
    message = error.get("message", error) if isinstance(error, Mapping) else error
    return "" if message is MISSING else f", saying {show(message)}"
