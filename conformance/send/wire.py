"""Makes one attempt: sends a request and reads the response with arrival times. Only this module uses httpx.

httpx's transport layer is used without its client: no cookies, no redirects, no decoding, no credentials of its own.
"""

from __future__ import annotations

import asyncio
import math
import os
import ssl
import time
import urllib.request
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx

from conformance.model import Ending, RequestCase
from conformance.model.exchange import Attempt
from conformance.send.rate_limits import TimeoutPolicy
from conformance.send.response_reader import Reading, ResponseMemoryBudget, only_comments
from conformance.send.target import Target

CHUNKS: Final = 3  # at least, of a body that is sent in chunks


class AttemptResult(NamedTuple):
    """An attempt, and whether the connection failed in a way that a retry may avoid."""

    attempt: Attempt
    transient: bool


class Wire:
    """A pool of connections to one target."""

    def __init__(self, target: Target, timeouts: TimeoutPolicy, connections: int) -> None:
        self._target = target
        self._timeouts = timeouts
        self._memory = ResponseMemoryBudget()
        self._transport = httpx.AsyncHTTPTransport(
            verify=_verification(target),
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=connections, keepalive_expiry=15.0),
            proxy=_proxy(target),
        )

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def attempt(self, case: RequestCase) -> AttemptResult:
        """Send a case once. Every failure of the target becomes an attempt; only cancellation propagates."""
        reading = Reading(round(time.time(), 6), case.hang_up_after, self._timeouts.most_bytes, self._memory)
        begun = time.perf_counter()
        transient = False
        try:
            await self._read(case, reading, begun)
        except TimeoutError:
            reading.fail(Ending.TIMED_OUT, reading.overdue)
        except httpx.ConnectTimeout:
            reading.fail(Ending.TIMED_OUT, f"no connection within {self._timeouts.connect:g} s")
            transient = True
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            reading.fail(Ending.TRUNCATED, _error_text(error))
            transient = reading.status is None and _is_transient(error)
        return AttemptResult(reading.attempt(_since(begun)), transient)

    async def _read(self, case: RequestCase, reading: Reading, begun: float) -> None:
        now = asyncio.get_running_loop().time
        timeouts = self._timeouts
        last = now() + timeouts.total
        head = min(timeouts.connect + timeouts.first_byte, timeouts.total)
        reading.overdue = f"no response head within {head:g} s"
        async with asyncio.timeout(head) as limit:
            response = await self._transport.handle_async_request(self._request(case))
            try:
                version = response.extensions.get("http_version", b"HTTP/1.1")
                unfinished = reading.head(response.status_code, response.headers.raw, version)
                assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 (for the type checker)
                async with aclosing(_chunks(response.stream)) as chunks:
                    patient_until = math.inf  # how long comments of an event stream are waited through
                    while unfinished:
                        due, reading.overdue = min(
                            (now() + timeouts.idle, f"silent for {timeouts.idle:g} s"),
                            (patient_until, f"only comments for {timeouts.first_byte:g} s"),
                            (last, f"not finished within {timeouts.total:g} s"),
                        )
                        limit.reschedule(due)
                        data = await anext(chunks, b"")
                        unfinished = bool(data) and reading.feed(data, _since(begun))
                        if not only_comments(data):
                            patient_until = math.inf
                        elif patient_until == math.inf:
                            patient_until = now() + timeouts.first_byte
            finally:
                await response.aclose()
                await self._drop_leftovers()

    async def _drop_leftovers(self) -> None:
        """Close idle connections with surplus bytes, which would be read as the response to the next request.

        httpx itself checks for bytes that wait in the socket; those that it has already read are only known inside.
        """
        for connection in tuple(getattr(getattr(self._transport, "_pool", None), "connections", ())):
            protocol = getattr(getattr(connection, "_connection", None), "_h11_state", None)
            if protocol is not None and connection.is_idle() and protocol.trailing_data[0]:
                await connection.aclose()

    def _request(self, case: RequestCase) -> httpx.Request:
        url = _url(self._target.url(case))
        lines = [("host", url.netloc.decode("ascii")), *self._target.head(case)]
        if case.chunked:
            lines.append(("transfer-encoding", "chunked"))
        elif case.content or case.method not in {"GET", "HEAD", "DELETE", "OPTIONS"}:
            lines.append(("content-length", str(len(case.content))))
        raw = [(name.encode("latin-1"), _line(value)) for name, value in lines]
        extensions = {"timeout": {"connect": self._timeouts.connect}}
        content = _in_chunks(case.content) if case.chunked else case.content
        return httpx.Request(case.method, url, headers=raw, content=content, extensions=extensions)


@lru_cache(maxsize=64)
def _url(text: str) -> httpx.URL:
    return httpx.URL(text)


async def _in_chunks(content: bytes) -> AsyncGenerator[bytes, None]:
    """A body in pieces, each of which is sent as a chunk of its own: none of the first ones is a JSON text."""
    size = max(len(content) // CHUNKS, 1)
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def _chunks(stream: httpx.AsyncByteStream) -> AsyncGenerator[bytes, None]:
    async for data in stream:
        if data:
            yield data


def _since(begun: float) -> float:
    return round(time.perf_counter() - begun, 6)


def _line(value: str) -> bytes:
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")


def _verification(target: Target) -> ssl.SSLContext:
    if target.base_url.lower().startswith("https:"):
        # certifi's roots, or those that SSL_CERT_FILE and SSL_CERT_DIR name, such as a private authority's
        return httpx.create_ssl_context(trust_env=True)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _proxy(target: Target) -> str | None:
    if not target.proxy_from_env or target.loopback:
        return None
    parts = urlsplit(target.base_url)
    if urllib.request.proxy_bypass(parts.netloc):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


def _root(error: BaseException) -> BaseException:
    """The original error, which lower layers wrap several times, also in exception groups."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
            continue
        below = error.__cause__ or error.__context__
        if below is None:
            return error
        error = below


def _error_text(error: Exception) -> str:
    root = _root(error)
    if isinstance(root, OSError) and root.errno and not isinstance(root, ssl.SSLError):
        # asyncio puts its own words and the address as a tuple into the text of the error
        description = os.strerror(root.errno) if root.errno > 0 else root.strerror or ""
        return description[:1].lower() + description[1:]
    message = str(root) or str(error)
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _is_transient(error: Exception) -> bool:
    """Whether a retry may succeed: not if the request cannot be sent, nor if the certificate is invalid."""
    if isinstance(error, ssl.SSLCertVerificationError) or isinstance(_root(error), ssl.SSLCertVerificationError):
        return False
    return isinstance(error, (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError, OSError))
