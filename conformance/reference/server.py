"""The reference on a real socket: Starlette on uvicorn, each portion of a response sent when it is due."""

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

RAW = "conformance.raw-send"
PATIENCE = 3600.0
CROWDING = 0.02


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
            # What goes wrong in a crowd needs one: a broken provider takes its time, so that requests overlap.
            await asyncio.sleep(provider.settings.latency or (CROWDING if provider.changes else 0.0))
            await _send(respond(provider, request), scope[RAW])
        finally:
            in_flight.remove(request)

    class Endpoint:
        """An ASGI endpoint: Starlette passes scope, receive and send to a class instance as they are."""

        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await answer(scope, receive, send)

    inner = Starlette(routes=[Route("/{path:path}", Endpoint())])

    async def outer(scope: Scope, receive: Receive, send: Send) -> None:
        scope[RAW] = send  # Starlette wraps it, and what is below has to reach the connection
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
        await asyncio.sleep(PATIENCE)
    _drop(send)


def _drop(send: Send) -> None:
    """Close the connection as a dying server would. ASGI has no word for that: reach for uvicorn's transport."""
    cycle: Any = getattr(send, "__self__", None)
    if cycle is not None:
        cycle.disconnected = True  # or uvicorn would complain, and answer 500, about an unfinished response
        cycle.transport.close()


def _server(provider: Reference, host: str, port: int) -> uvicorn.Server:
    for noisy in ("uvicorn.error", "asyncio"):  # a client that hangs up is no news
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
    """Serve in a thread as long as the context lasts; yields the URL to which the operation's path is appended."""
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
    """Serve until interrupted; `started` is told the URL once connections are taken."""
    with _listening(host, port) as listener:
        started(f"http://{host}:{listener.getsockname()[1]}")
        with suppress(KeyboardInterrupt):
            _server(provider, host, port).run(sockets=[listener])


@contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    """A listening socket: bound before the server starts, so that its port is known and no request comes too early."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # TCP is named, not left to be guessed: asyncio switches Nagle's delay off only where it is.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(1024)
        listener.setblocking(False)
        yield listener
