"""Headers: charset, caching and request id of a reply."""

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

    Clients that follow the header decode every character beyond ASCII wrongly.

    Fix: leave the charset out, or send `charset=utf-8`.
    """
    declared = x.header("content-type")
    if declared is None:
        return
    if all(name.lower() in {"utf-8", "utf8"} for name in CHARSET.findall(declared)):
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
    """A stream does not permit caches to store it.

    A cache that stores a sampled completion replays it to the next caller, and delays the stream until it is complete.

    Fix: send `Cache-Control: no-cache` with streams, and neither `public` nor a lifetime.
    """
    directives = (x.header("cache-control") or "").lower()
    forbidden = "no-store" in directives or "no-cache" in directives
    if not forbidden and (LIFETIME.search(directives) or "public" in directives):
        yield Violation(f"cache-control is {show(directives)}; expected no-cache or no-store", "cache-control")
    else:  # RFC 9111 lets caches store a reply to POST only with an explicit lifetime
        yield Satisfied("cache-control")


@check(
    "headers",
    Scope.ANY,
    good=lambda: example(plain(completion(choice()), headers={"X-Request-Id": "req_1"})),
    bad=lambda: example(plain(completion(choice()))),
)
def request_id_is_sent(x: Exchange, context: CheckContext) -> Findings:
    """A reply names the request in a header such as `x-request-id`.

    Support asks for it first; without it a failed request can hardly be found in the provider's logs.

    Fix: send `x-request-id` with each reply, refusals included.
    """
    if x.status is None:
        return
    header = next((name for name, value in x.headers if value and REQUEST_ID.search(name.lower())), None)
    if header:
        yield Satisfied(header)
    else:
        yield Violation("no header has an id of the request; expected one such as x-request-id", "headers")
