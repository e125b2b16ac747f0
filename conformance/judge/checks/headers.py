"""Headers: what a reply says of itself before its body."""

from __future__ import annotations

import re
from typing import Final

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.fixtures import choice, completion, example, plain, stream
from conformance.model import Satisfied, Violation
from conformance.model.exchange import Exchange

CHARSET: Final = re.compile(r";\s*charset\s*=\s*\"?([^\";\s]*)", re.IGNORECASE)
LIFETIME: Final = re.compile(r"(?:s-maxage|max-age)\s*=\s*\"?0*[1-9]")
REQUEST_ID: Final = re.compile(r"(?:request|correlation|trace)-?id$|^cf-ray$|^traceparent$")


@check(
    "headers",
    Scope.SUCCESS,
    good=lambda: example(plain(completion(choice()), media_type='application/json; charset="UTF-8"')),
    bad=lambda: example(plain(completion(choice()), media_type="application/json; charset=ISO-8859-1")),
)
def charset_is_utf8(x: Exchange, context: CheckContext) -> Findings:
    """Where the content type names a charset, it is UTF-8.

    Clients that believe the header decode every character beyond ASCII into nonsense.

    Fix: leave the charset out, or say `charset=utf-8`.
    """
    declared = x.header("content-type")
    if declared is None:
        return
    named = CHARSET.findall(declared)
    if all(name.lower() in {"utf-8", "utf8"} for name in named):
        yield Satisfied("content-type")
    else:
        yield Violation(f"content-type is {show(declared)}; expected charset=utf-8 or none", "content-type")


@check(
    "headers",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice()), headers={"cache-control": "no-cache, must-revalidate"})),
    bad=lambda: example(stream(completion(choice()), headers={"cache-control": "public, max-age=300"})),
)
def stream_is_not_cacheable(x: Exchange, context: CheckContext) -> Findings:
    """A stream does not invite caches to keep it.

    A cache that stores a sampled completion replays it to the next caller, and holds the stream back until it is whole.

    Fix: send `Cache-Control: no-cache` with streams, and neither `public` nor a lifetime.
    """
    told = (x.header("cache-control") or "").lower()
    forbidden = "no-store" in told or "no-cache" in told
    if not forbidden and (LIFETIME.search(told) or "public" in told):
        yield Violation(f"cache-control is {show(told)}; expected no-cache or no-store", "cache-control")
    else:  # without a lifetime no cache keeps the reply to a POST
        yield Satisfied("cache-control")


@check(
    "headers",
    Scope.ANY,
    good=lambda: example(plain(completion(choice()), headers={"X-Request-Id": "req_1"})),
    bad=lambda: example(plain(completion(choice()))),
)
def request_id_is_sent(x: Exchange, context: CheckContext) -> Findings:
    """A reply names the request in a header such as `x-request-id`.

    Support asks for it first; without it a failing request can hardly be found in the provider's logs.

    Fix: send `x-request-id` with each reply, refusals too.
    """
    if x.status is None:
        return
    found = next((name for name, value in x.headers if value and REQUEST_ID.search(name.lower())), None)
    if found:
        yield Satisfied(found)
    else:
        yield Violation("no header names the request; expected one such as x-request-id", "headers")
