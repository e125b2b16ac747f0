"""A server that misbehaves on purpose: raw sockets, one behaviour at a time, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field

BODY = (
    b'{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"text":" 4","index":0,'
    b'"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":4,"completion_tokens":1,"total_tokens":5}}'
)
EVENT = b'data: {"id":"cmpl-1","choices":[{"text":"a","index":0,"logprobs":null,"finish_reason":null}]}\n\n'


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass
class Server:
    """What a test may look at: where to go, and what came."""

    base_url: str = ""
    requests: list[Request] = field(default_factory=list)
    connections: int = 0


Answer = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


def head(status: str = "200 OK", *lines: str, length: int | None = None, media: str = "application/json") -> bytes:
    fields = [f"HTTP/1.1 {status}", f"content-type: {media}", *lines]
    if length is not None:
        fields.append(f"content-length: {length}")
    return ("\r\n".join(fields) + "\r\n\r\n").encode("latin-1")


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(one), one) for one in chunks)


STREAM = head("200 OK", "transfer-encoding: chunked", media="text/event-stream")


def says(status: str = "200 OK", *lines: str, body: bytes = BODY, media: str = "application/json") -> Answer:
    """A well-behaved reply."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(head(status, *lines, length=len(body), media=media) + body)

    return answer


def raw(data: bytes, *, close: bool = True) -> Answer:
    """Exactly these bytes, then the connection's end."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        if close:
            writer.close()

    return answer


def resets(data: bytes = b"") -> Answer:
    """These bytes, then a TCP reset."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(0.01 if data else 0)
        _reset(writer)

    return answer


def _reset(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def endless(before: bytes, again: bytes, pause: float | None = None) -> Answer:
    """Something, then the same thing for ever."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(before)
        while True:
            writer.write(again)
            await writer.drain()
            if pause is not None:
                await asyncio.sleep(pause)

    return answer


def falls_silent(before: bytes, seconds: float = 60) -> Answer:
    """Something, then nothing for longer than any test waits."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(before)
        await writer.drain()
        await asyncio.sleep(seconds)

    return answer


def in_turn(*answers: Answer) -> Answer:
    """The first answer to the first request, and so on; the last one stays."""
    left = list(answers)

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(request, writer)

    return answer


def slow(seconds: float, answer: Answer) -> Answer:
    async def late(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(seconds)
        await answer(request, writer)

    return late


def gzip_bomb(megabytes: int, kind: str = "gzip", what: bytes = b"0") -> Answer:
    """A few kilobytes that unpack to many megabytes."""
    unit = what * (1024 * 1024 // len(what))
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(unit) + packer.flush(zlib.Z_FULL_FLUSH)  # which depends on nothing before it
    total = zlib.crc32 if kind == "gzip" else zlib.adler32
    check = total(b"")
    for _ in range(megabytes):
        check = total(unit, check)
    if kind == "gzip":
        first = gzip.compress(b"")[:10]
        last = struct.pack("<II", check, len(unit) * megabytes % 2**32)
    else:
        first, last = b"\x78\xda", struct.pack(">I", check)
    packed = first + block * megabytes + packer.flush() + last
    return says("200 OK", f"content-encoding: {kind}", body=packed)


@contextlib.contextmanager
def never_shakes_hands() -> Iterator[str]:
    """A listener that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as there:
        yield f"https://127.0.0.1:{there.getsockname()[1]}"


def zeros(gigabytes: int = 4) -> Answer:
    """A body whose declared length nobody could keep."""
    return endless(head(length=gigabytes * 1024**3), b"0" * 65536)


@contextlib.contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """The server on a loopback port for as long as the block lasts."""
    server, loop, ready = Server(), asyncio.new_event_loop(), threading.Event()

    async def serve() -> None:
        tasks: set[asyncio.Task[None]] = set()

        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            server.connections += 1
            number = server.connections
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                async for request in _requests(reader, number):
                    server.requests.append(request)
                    await answer(request, writer)
                    await writer.drain()
                    if writer.is_closing():
                        break
            with contextlib.suppress(Exception):
                writer.close()
            tasks.discard(task)

        listening = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
        server.base_url = f"http{'s' if tls else ''}://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        ready.set()
        await stop.wait()
        listening.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()), daemon=True)
    thread.start()
    ready.wait(5)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(5)
        loop.close()


async def _requests(reader: asyncio.StreamReader, number: int) -> AsyncIterator[Request]:
    while True:
        top = await reader.readuntil(b"\r\n\r\n")
        first, *lines = top.decode("latin-1").strip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(await reader.readline(), 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        else:
            body = await reader.readexactly(int(headers.get("content-length", 0)))
        yield Request(method, path, headers, body, number)
