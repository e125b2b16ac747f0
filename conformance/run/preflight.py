"""Whether the first reply shows an API at all: where it does not, one line says why, and nothing more is sent."""

from __future__ import annotations

from collections.abc import Mapping

from conformance.judge.catalogue import show
from conformance.model import Credential, Phase, RequestCase, Validity
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING
from conformance.send import Redaction, Target


def first(phase: Phase) -> RequestCase | None:
    """The case that goes ahead alone: valid, with the key, and read to its end."""
    fit = (
        case
        for case in phase.cases
        if case.validity is Validity.VALID
        and case.credential is Credential.KEY
        and case.hang_up_after is None
        and not case.hostile
        and isinstance(case.body, Mapping)
    )
    return next(fit, None)


def obstacle(x: Exchange, target: Target) -> str:
    """Why nothing else is worth sending; empty where the target answers as an API does."""
    url = Redaction(target.secrets).text(target.url(x.case))
    if x.status is None:
        tried = f" in {len(x.attempts)} attempts" if len(x.attempts) > 1 else ""
        return f"{target.base_url} gave no reply{tried}: {x.last.error}; {_advice(x.last.error)}"
    seen = f"HTTP {x.status} for {x.case.method} {url}"
    if 300 <= x.status < 400:
        there = show(x.header("location") or "nowhere")
        return f"{seen}, a redirect to {there}; it is not followed, lest the key goes elsewhere: see --base-url"
    if _is_html(x):
        return f"{seen} with HTML, {show(x.content[:60])}; expected JSON: see that --base-url is the API's address"
    if x.status in {401, 403}:
        key = "although a key was sent" if target.key else "and no key was sent"
        return f"{seen}, {key}{_said(x)}; set CONFORMANCE_API_KEY, or name another variable with --api-key-env"
    if x.status in {404, 405}:
        return f"{seen}{_said(x)}; see that --base-url and --model are right"
    if x.status in {429, 502, 503, 504}:
        return f"{seen} after {len(x.attempts)} attempts{_said(x)}; the target is overloaded or down: try later"
    return ""


def _advice(error: str) -> str:
    """What to do about a connection that came to nothing."""
    if "CERTIFICATE_VERIFY_FAILED" in error:
        return "name the file of the authority that signed it with SSL_CERT_FILE"
    if "WRONG_VERSION_NUMBER" in error:
        return "what answers there speaks no TLS: see whether --base-url is to begin with http://"
    return "see that it runs and that --base-url is right"


def _is_html(x: Exchange) -> bool:
    return x.media_type in {"text/html", "application/xhtml+xml"} or (
        x.json is MISSING and x.content.lstrip()[:1] == b"<"
    )


def _said(x: Exchange) -> str:
    body = x.json
    error = body.get("error", body) if isinstance(body, Mapping) else body
    message = error.get("message", error) if isinstance(error, Mapping) else error
    return "" if message is MISSING else f", saying {show(message)}"
