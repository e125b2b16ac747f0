"""The reference on a real socket: Starlette on uvicorn; each portion of a response is sent when it is due."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request as Received
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from conformance.model import Ending
from conformance.reference.core import Reference, respond
from conformance.reference.messages import Request, Response

RAW_SEND = "conformance.raw-send"
SILENCE_S = 3600.0  # longer than any client waits
OVERLAP_S = 0.02  # long enough that concurrent requests overlap


def application(provider: Reference) -> ASGIApp:
    """The ASGI application that answers every path and method through the core."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        received = Received(scope, receive)
        request = Request(
            received.method,
            received.url.path,
            received.url.query,
            tuple((name, value) for name, value in received.headers.items()),
            await received.body(),
        )
        in_flight = provider.memory.in_flight
        in_flight.append(request)
        try:
            # Some faults show only while several requests are in progress, so an altered provider answers slowly.
            await asyncio.sleep(provider.settings.latency or (OVERLAP_S if provider.alterations else 0.0))
            await _send(respond(provider, request), scope[RAW_SEND])
        finally:
            in_flight.remove(request)

    class Endpoint:
        """An ASGI endpoint: Starlette passes scope, receive and send to a class instance as they are."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await answer(scope, receive, send)

    inner = Starlette(routes=[Route("/{path:path}", Endpoint())])

    async def outer(scope: Scope, receive: Receive, send: Send) -> None:
        scope[RAW_SEND] = send  # Starlette wraps `send`, but closing the connection needs the original
        await inner(scope, receive, send)

    return outer


async def _send(response: Response, send: Send) -> None:
    if response.status is not None:
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in response.headers]
        if len(response.portions) == 1 and response.ending is Ending.COMPLETE:
            headers.append((b"content-length", str(len(response.content)).encode()))
        await send({"type": "http.response.start", "status": response.status, "headers": headers})
        for portion in response.portions:
            if portion.delay:
                await asyncio.sleep(portion.delay)
            await send({"type": "http.response.body", "body": portion.data, "more_body": True})
    if response.ending is Ending.COMPLETE and response.status is not None:
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return
    if response.ending is Ending.TIMED_OUT:
        await asyncio.sleep(SILENCE_S)
    _drop(send)


def _drop(send: Send) -> None:
    """Close the connection in the middle of a response. ASGI cannot do that, so use uvicorn's transport."""
    cycle: Any = getattr(send, "__self__", None)
    if cycle is not None:
        cycle.disconnected = True  # otherwise uvicorn reports an unfinished response, and sends 500
        cycle.transport.close()


def _server(provider: Reference, host: str, port: int) -> uvicorn.Server:
    for noisy in ("uvicorn.error", "asyncio"):  # clients that hang up are expected
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    config = uvicorn.Config(
        application(provider),
        host=host,
        port=port,
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=30,
        backlog=1024,
    )
    return uvicorn.Server(config)


@contextmanager
def serve(provider: Reference, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve in a thread while the context lasts; yields the URL to which the operation's path is appended."""
    with _listening(host, port) as listener:
        server = _server(provider, host, port)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="reference", daemon=True)
        thread.start()
        try:
            yield f"http://{host}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=10)


def serve_forever(provider: Reference, host: str = "127.0.0.1", port: int = 0, *, started: Any = print) -> None:
    """Serve until interrupted; `started` is called with the URL as soon as connections are accepted."""
    with _listening(host, port) as listener:
        started(f"http://{host}:{listener.getsockname()[1]}")
        with suppress(KeyboardInterrupt):
            _server(provider, host, port).run(sockets=[listener])


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket, bound before the server starts, so that its port is known and no request is refused."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that were created with IPPROTO_TCP.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
        listener.setblocking(False)
        yield listener
