"""Headers of successful replies."""

from __future__ import annotations

from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Response
from conformance.selftest.edits import streaming, successful, with_header
from conformance.selftest.fault import fault


@fault(Stage.RESPONSE, "charset_is_utf8", when=("plain", "streamed"))
def charset_is_latin_1(response: Response, call: Call) -> Response:
    """The content type declares the character set ISO-8859-1, although the content is UTF-8."""
    media_type = dict(response.headers).get("content-type", "").partition(";")[0]
    return (
        with_header(response, "content-type", f"{media_type}; charset=ISO-8859-1") if successful(response) else response
    )


@fault(Stage.RESPONSE, "stream_is_not_cacheable", only=streaming)
def streams_may_be_cached(response: Response, call: Call) -> Response:
    """The headers of a stream allow caches to keep it for an hour."""
    return with_header(response, "cache-control", "public, max-age=3600") if successful(response) else response
