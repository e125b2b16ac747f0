"""One attempt on the wire: bytes out, bytes in with their times. The only place for httpx.

httpx's transport layer is used without its client: no cookies, no redirects, no decoding, no credentials of its own.
"""

from __future__ import annotations

import asyncio
import ssl
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import httpx

from conformance.exchange import Attempt, Piece
from conformance.model import Ending, RequestCase
from conformance.transport.pace import Patience
from conformance.transport.target import Target

MOST_PIECES: Final = 20_000  # beyond, pieces are joined: a million tiny ones must not cost a gigabyte
JOINED: Final = 64 * 1024


class Tried(NamedTuple):
    """An attempt, and whether the connection failed in a way that another attempt may mend."""

    attempt: Attempt
    transient: bool


class Wire:
    """A pool of connections to one target."""

    def __init__(self, target: Target, patience: Patience, connections: int) -> None:
        self._target = target
        self._patience = patience
        self._transport = httpx.AsyncHTTPTransport(
            verify=_verification(target),
            trust_env=False,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=connections, keepalive_expiry=15.0),
            proxy=_proxy(target),
        )

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def attempt(self, case: RequestCase) -> Tried:
        """Send a case once. Whatever the target does ends here, in an attempt; only cancellation passes."""
        reading = _Reading(self._patience, case.hang_up_after)
        transient = False
        try:
            await reading.run(self._transport, self._request(case))
        except TimeoutError:
            reading.fail(Ending.TIMED_OUT, reading.overdue)
        except httpx.ConnectTimeout:
            reading.fail(Ending.TIMED_OUT, f"no connection within {self._patience.connect:g} s")
            transient = True
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as error:
            reading.fail(Ending.TRUNCATED, _told(error))
            transient = reading.status is None and _may_pass(error)
        return Tried(reading.attempt(), transient)

    def _request(self, case: RequestCase) -> httpx.Request:
        url = httpx.URL(self._target.url(case))
        lines = [("host", url.netloc.decode("ascii")), *self._target.head(case)]
        if case.content or case.method not in {"GET", "HEAD", "DELETE", "OPTIONS"}:
            lines.append(("content-length", str(len(case.content))))
        raw = [(name.encode("latin-1"), _line(value)) for name, value in lines]
        extensions = {"timeout": {"connect": self._patience.connect}}
        return httpx.Request(case.method, url, headers=raw, content=case.content, extensions=extensions)


class _Reading:
    """The state of one attempt while it is read."""

    def __init__(self, patience: Patience, hang_up_after: int | None) -> None:
        self._patience = patience
        self._hang_up_after = hang_up_after
        self._started_at = time.time()
        self._begun = time.perf_counter()
        self._pieces: list[Piece] = []
        self._joined = bytearray()
        self._size = 0
        self._ending = Ending.COMPLETE
        self._error = ""
        self._headers: tuple[tuple[str, str], ...] = ()
        self._http_version = "HTTP/1.1"
        self.status: int | None = None
        self.overdue = ""

    async def run(self, transport: httpx.AsyncHTTPTransport, request: httpx.Request) -> None:
        now = asyncio.get_running_loop().time
        patience, begun = self._patience, now()
        last = begun + patience.whole
        head = patience.connect + patience.first_byte
        self.overdue = f"no response head within {min(head, patience.whole):g} s"
        async with asyncio.timeout_at(min(begun + head, last)) as limit:
            response = await transport.handle_async_request(request)
            self.status = response.status_code
            self._headers = tuple((_text(name), _text(value)) for name, value in response.headers.raw)
            self._http_version = _text(response.extensions.get("http_version", b"HTTP/1.1"))
            try:
                assert isinstance(response.stream, httpx.AsyncByteStream)  # noqa: S101 (for the type checker)
                async with aclosing(_steps(response.stream)) as steps:
                    limit.reschedule(min(now() + patience.idle, last))
                    self.overdue = f"silent for {patience.idle:g} s"
                    if self._hang_up_after == 0:
                        self._ending = Ending.ABANDONED
                        return
                    async for data in steps:
                        if not self._keep(data):
                            return
                        if (due := now() + patience.idle) >= last:
                            due, self.overdue = last, f"not finished within {patience.whole:g} s"
                        limit.reschedule(due)
            finally:
                await response.aclose()

    def _keep(self, data: bytes) -> bool:
        """Keep what was read; False when it is enough."""
        fits = data[: self._patience.most_bytes - self._size]
        self._size += len(data)
        at = self._elapsed()
        if len(self._pieces) < MOST_PIECES:
            self._pieces.append(Piece(at, fits))
        else:
            self._joined += fits
            if len(self._joined) >= JOINED:
                self._flush(at)
        if self._size > self._patience.most_bytes:
            self.fail(Ending.OVERSIZED, f"longer than {self._patience.most_bytes} bytes, where reading stopped")
        elif self._hang_up_after is not None and len(self._pieces) >= self._hang_up_after:
            self._ending = Ending.ABANDONED
        return self._ending is Ending.COMPLETE

    def _flush(self, at: float) -> None:
        if self._joined:
            self._pieces.append(Piece(at, bytes(self._joined)))
            self._joined.clear()

    def _elapsed(self) -> float:
        return round(time.perf_counter() - self._begun, 6)

    def fail(self, ending: Ending, error: str) -> None:
        self._ending, self._error = ending, error

    def attempt(self) -> Attempt:
        elapsed = self._elapsed()
        self._flush(elapsed)
        return Attempt(
            round(self._started_at, 6),
            self.status,
            self._headers,
            tuple(self._pieces),
            self._ending,
            self._error,
            elapsed,
            self._http_version,
        )


async def _steps(stream: httpx.AsyncByteStream) -> AsyncIterator[bytes]:
    async for data in stream:
        if data:
            yield data


def _text(data: bytes) -> str:
    return data.decode("latin-1")


def _line(value: str) -> bytes:
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")


def _verification(target: Target) -> ssl.SSLContext:
    if target.base_url.lower().startswith("https:"):
        # certifi's roots, or those that SSL_CERT_FILE and SSL_CERT_DIR name: a company's own are kept there
        return httpx.create_ssl_context(trust_env=True)
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _proxy(target: Target) -> str | None:
    if not target.proxy_from_env or target.loopback:
        return None
    parts = urlsplit(target.base_url)
    if urllib.request.proxy_bypass(parts.netloc):
        return None
    found = urllib.request.getproxies()
    return found.get(parts.scheme) or found.get("all")


def _root(error: BaseException) -> BaseException:
    """The error that started it: layers below wrap it several times, in groups too."""
    while True:
        if isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
            continue
        below = error.__cause__ or error.__context__
        if below is None:
            return error
        error = below


def _told(error: Exception) -> str:
    root = _root(error)
    said = str(root) or str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _may_pass(error: Exception) -> bool:
    """Whether another attempt makes sense: not where we could not send it, nor for a certificate."""
    if isinstance(error, ssl.SSLCertVerificationError) or isinstance(_root(error), ssl.SSLCertVerificationError):
        return False
    return isinstance(error, (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError, OSError))
