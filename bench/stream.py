"""Peak memory of reading a stream of 100 MB: the sender keeps no more than its size cap.

python bench/stream.py [MEGABYTES]
"""

import asyncio
import resource
import sys
import threading

from conformance.contract import load
from conformance.model import Phase, RequestCase
from conformance.model.budget import Account, Budget
from conformance.send import Sender, Target

EVENT = b'data: {"choices":[{"index":0,"text":"' + b"x" * 900 + b'","logprobs":null,"finish_reason":null}]}\n\n'


async def endless(reader, writer, megabytes):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
    try:
        for _ in range(megabytes * 1_000_000 // len(EVENT)):
            writer.write(EVENT)
            await writer.drain()
    except ConnectionError:
        pass
    writer.close()


def serve(megabytes, ready):
    async def run():
        server = await asyncio.start_server(lambda r, w: endless(r, w, megabytes), "127.0.0.1", 0)
        ready.append(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    asyncio.run(run())


async def read(port):
    contract = load("openai")
    case = RequestCase("bench/0", b'{"model":"m","prompt":"x","stream":true}', "bench", path=contract.path)
    async with Sender(Target(f"http://127.0.0.1:{port}", contract.path), Account(Budget())) as sender:
        return (await sender.send(Phase("bench", (case,))))[0]


def main():
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    ready = []
    threading.Thread(target=serve, args=(megabytes, ready), daemon=True).start()
    while not ready:
        pass
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    x = asyncio.run(read(ready[0]))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept = sum(len(piece.data) for piece in x.pieces)
    print(
        f"{megabytes} MB sent, {kept / 1e6:.1f} MB kept, ended {x.ending},"
        f" peak memory {before / 1024:.0f} → {after / 1024:.0f} MiB"
    )


if __name__ == "__main__":
    main()
