"""What a hostile target can do to a run: one run for each misbehaviour, with its result, time and peak memory.

    python bench/hostile.py [--only GLOB] [--from-the-start] [--profile full] [--at-once 2]

The servers are those of tests/hostile.py. Each run is `conformance run` in a process of its own, which has a peak of
its own. The first reply is correct, all others are not; with --from-the-start, none is. Exit code 1 if a run takes
512 MiB or more, ends with a fault of the suite, prints terminal escape sequences, writes a report with active
content, or a page larger than 32 MiB.
"""

import argparse
import contextlib
import gzip
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from conformance.model.json_text import loads
from tests import hostile
from tests.hostile import BODY, EVENT, STREAM, chunked, head, says

MOST_MEMORY, MOST_PAGE, MOST_DISK = 512, 32, 10**9
ESCAPES = rb"\u001b]0;owned\u0007\u001b[2J\u009b31m\u202e"
MARKUP = rb"</script><script>alert(1)</script><img src=x onerror=alert(1)>"
ENDED = b"0\r\n\r\n"


def stream(*events):
    """A stream that ends correctly, sent at once."""
    return hostile.raw(STREAM + chunked(b"".join(events)) + ENDED, close=False)


def event(text=b"a"):
    """A chunk with this text."""
    choice = b'{"text":"%s","index":0,"logprobs":null,"finish_reason":null}' % text
    return b'data: {"id":"x","object":"text_completion","created":1,"model":"m","choices":[%s]}\n\n' % choice


def body_with(text):
    """The correct body with this text in its strings."""
    return BODY.replace(b'" 4"', b'"%s"' % text).replace(b"cmpl-1", text).replace(b'"m"', b'"%s"' % text)


def everywhere(text):
    """A text in every string that a reply can hold: plain, streamed, and refused."""

    async def answer(request, writer):
        try:
            asked = loads(request.body)
        except ValueError:
            asked = None
        name = re.sub(rb"[^\x20-\x7e]|[\r\n]", b"", text).decode()
        if not isinstance(asked, dict) or asked.get("max_tokens") == 1:
            told = b'{"error":{"message":"%s","type":"%s","param":"%s","code":"%s"},"%s":"%s"}' % ((text,) * 6)
            await says(f"400 {name}", f"x-a: {name}", body=told)(request, writer)
        elif asked.get("stream"):
            done = event(text) + b"event: %s\nid: %s\n: %s\ndata: [DONE]\n\n" % ((name.encode(),) * 3)
            await stream(event(text), done)(request, writer)
        else:
            await says("200 OK", f"{'x-a'}: {name}", body=body_with(text))(request, writer)

    return answer


def resets_everywhere():
    """A reset after each byte of a reply in turn."""
    whole = STREAM + chunked(EVENT, EVENT) + ENDED
    place = 0

    async def answer(request, writer):
        nonlocal place
        place = (place + 3) % len(whole)
        await hostile.resets(whole[:place])(request, writer)

    return answer


def zstd_bomb():
    """Four gigabytes of one byte in 128 kB: a frame of run-length blocks, as RFC 8878 has them."""
    size = 128 * 1024
    block = (1 << 1 | size << 3).to_bytes(3, "little") + b"0"
    return b"\x28\xb5\x2f\xfd\x00\x58" + block * (4 * 1024**3 // size)


BROTLI_BOMB = bytes.fromhex(  # 64 MiB
    "cfffff7ff82560e2b14020f7fe9ffffffff04b00c4610180eefd3fffffffe1970088c32200ddfbfffcffffc72f0110870500baf7ff"
)
MANY_CHOICES = b'{"id":"x","object":"text_completion","created":1,"model":"m","choices":[%s],"usage":null}' % b",".join(
    b'{"text":"a","index":%d,"logprobs":null,"finish_reason":"stop"}' % n for n in range(100_000)
)
MANY_TOKENS = BODY.replace(
    b'"logprobs":null',
    b'"logprobs":{"tokens":[%s],"token_logprobs":[%s],"text_offset":[%s],"top_logprobs":[%s]}'
    % (b'"a",' * 99_999 + b'"a"', b"-1," * 99_999 + b"-1", b"0," * 99_999 + b"0", b'{"a":-1},' * 99_999 + b'{"a":-1}'),
)


@dataclass(frozen=True)
class Case:
    """One misbehaviour: how it answers, or what serves it where it is none of HTTP."""

    name: str
    answer: object = None
    served: object = None


def cases(elsewhere):
    """All misbehaviours by name; `elsewhere` is another host, where no key may ever come."""
    deep, wide = b"[" * 100_000 + b"]" * 100_000, b"[" + b"0," * 4_000_000 + b"0]"
    objects = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    zeros = hostile.endless(head(length=4 * 1024**3), b"0" * 65536)
    yield Case("endless stream", hostile.endless(STREAM, chunked(EVENT)))
    yield Case("endless stream of one event", hostile.endless(STREAM, chunked(b"data: " + b"x" * 60_000 + b"\n")))
    yield Case("endless comments", hostile.endless(STREAM, chunked(b": ping\n\n" * 1000)))
    yield Case("endless empty lines", hostile.endless(STREAM, chunked(b"\n" * 60_000)))
    yield Case("endless headers", hostile.endless(b"HTTP/1.1 200 OK\r\n", b"x: y\r\n" * 50))
    yield Case("a thousand headers", says("200 OK", *(f"x-{n}: y" for n in range(1000))))
    yield Case("a header of 60 kB", says("200 OK", "x: " + "y" * 60_000))
    yield Case("endless 100 Continue", hostile.endless(b"", b"HTTP/1.1 100 On\r\n\r\n", 0.01))
    yield Case("endless trailers", hostile.endless(STREAM + b"0\r\n", b"x: y\r\n" * 50))
    yield Case("slow loris, head", hostile.endless(b"HTTP/1.1 200 OK\r\n", b"x", 0.2))
    yield Case("slow loris, body", hostile.endless(head(length=10**6), b"x", 0.2))
    yield Case("silent at once", hostile.falls_silent(b"", 600))
    yield Case("silent in the body", hostile.falls_silent(STREAM + chunked(EVENT), 600))
    yield Case("4 GB body", zeros)
    yield Case("4 GB of brackets", hostile.endless(head(length=4 * 1024**3), b"[" * 65536))
    yield Case("gzip bomb, 1 GB", hostile.gzip_bomb(1024))
    yield Case("gzip bomb, of objects", hostile.gzip_bomb(60, what=b'{"a":{}},'))
    yield Case("gzip bomb, 63 MB that may be read", hostile.gzip_bomb(15))
    member = gzip.compress(b"")
    packs = "content-encoding: gzip"
    yield Case("gzip members of nothing, 14 MB", says("200 OK", packs, body=member * (14_700_000 // len(member))))
    yield Case("gzip member and zeros, 16 MB", says("200 OK", packs, body=gzip.compress(b"{}") + bytes(15_900_000)))
    yield Case("gzip magic and zeros, 16 MB", says("200 OK", packs, body=b"\x1f\x8b" + bytes(15_900_000)))
    yield Case("gzip in the second member", says("200 OK", packs, body=member + gzip.compress(bytes(15_000_000))))
    yield Case("zeros, 15 MB", says(body=bytes(15_000_000)))
    yield Case("ninety-five headers of 900 B", says("200 OK", *(f"x-{n}: {'y' * 900}" for n in range(95))))
    yield Case("twenty thousand headers", says("200 OK", *("x:1" for _ in range(20_000))))
    packed = gzip.compress(gzip.compress(b"0" * 2**26))
    yield Case("gzip in gzip", says("200 OK", "content-encoding: gzip, gzip", body=packed))
    yield Case("deflate bomb, 1 GB", hostile.gzip_bomb(1024, "deflate"))
    yield Case("brotli bomb", says("200 OK", "content-encoding: br", body=BROTLI_BOMB))
    yield Case("zstd bomb, 4 GB", says("200 OK", "content-encoding: zstd", body=zstd_bomb()))
    yield Case("lines of a megabyte", hostile.endless(STREAM, chunked(b"data: " + b"x" * 1_000_000 + b"\n\n"), 0.01))
    yield Case("one line of 15 MB", says(body=b"data: " + b"x" * 15_000_000, media="text/event-stream"))
    yield Case("a million tiny events", says(body=b"data:1\n\n" * 1_000_000, media="text/event-stream"))
    yield Case("a hundred thousand chunks", stream(event() * 100_000, b"data: [DONE]\n\n"))
    yield Case("an event of a million lines", says(body=b"data:a\n" * 1_000_000 + b"\n", media="text/event-stream"))
    yield Case("a text of 15 MB", says(body=BODY.replace(b" 4", b"4" * 15_000_000)))
    yield Case("invalid UTF-8, plain", says(body=body_with(b"\xff\xfe\xc3(\xed\xa0\x80")))
    yield Case("invalid UTF-8, streamed", stream(event(b"\xf0\x9f"), event(b"\x98\x80\xff"), b"data: [DONE]\n\n"))
    yield Case("lone surrogates", everywhere(rb"\ud83d\udc00\ud800"))
    yield Case("nulls and controls", everywhere(rb"\u0000\u0001\u007f\u2028"))
    yield Case("JSON, 100,000 lists deep", says(body=deep))
    yield Case("JSON, 100,000 objects deep", says(body=objects))
    yield Case("JSON, deep in a choice", says(body=BODY.replace(b'"logprobs":null', b'"logprobs":' + objects)))
    yield Case("JSON, deep in an error", says("400 No", body=b'{"error":{"message":' + deep + b"}}"))
    yield Case("JSON, deep in an event", stream(b"data: " + deep + b"\n\n", b"data: [DONE]\n\n"))
    yield Case("a number of a million digits", says(body=BODY.replace(b":5}", b":" + b"9" * 1_000_000 + b"}")))
    yield Case("1e999999", says(body=BODY.replace(b":5}", b":1e999999}").replace(b'"created":1', b'"created":-1e999')))
    yield Case("NaN and Infinity", says(body=BODY.replace(b":5}", b":NaN}").replace(b":1,", b":Infinity,")))
    yield Case("four million numbers", says(body=wide))
    yield Case("a hundred thousand choices", says(body=MANY_CHOICES))
    yield Case("a hundred thousand tokens", says(body=MANY_TOKENS))
    yield Case("an index of 10**300", says(body=BODY.replace(b'"index":0', b'"index":' + b"9" * 300)))
    yield Case("redirect to another host", says("307 Away", f"location: {elsewhere}/steal", body=b""))
    yield Case("redirect for ever", says("302 Away", "location: /v1/completions", body=b""))
    yield Case("reset at every byte", resets_everywhere())
    yield Case("closed without a word", hostile.raw(b""))
    yield Case(
        "answers after the answer", hostile.raw(head(length=len(BODY)) + BODY + head("418 No", length=0), close=False)
    )
    yield Case("not HTTP", hostile.raw(b"SSH-2.0-OpenSSH_9.2\r\n\r\n" * 100))
    yield Case("two lengths", hostile.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 9\r\n\r\n12345"))
    yield Case("a length of 10**30", hostile.raw(b"HTTP/1.1 200 OK\r\ncontent-length: 1" + b"0" * 30 + b"\r\n\r\n{}"))
    yield Case("chunks with endless extensions", hostile.endless(STREAM + b"1;", b"x" * 1000))
    yield Case("status 999", hostile.raw(b"HTTP/1.1 999 What\r\ncontent-length: 0\r\n\r\n", close=False))
    yield Case("[DONE] in texts", stream(event(b"data: [DONE]"), event(rb"\n\ndata: [DONE]\n\n"), b"data: [DONE]\n\n"))
    yield Case(
        "[DONE] in other words", stream(event(), b"data: [done]\n\ndata: [DONE] \n\ndata:  [DONE]\n\ndata: [DONE]x\n\n")
    )
    yield Case("terminal escapes", everywhere(ESCAPES))
    yield Case("markup", everywhere(MARKUP))
    yield Case("markdown", everywhere(rb"`|**x** [a](javascript:alert(1)) @everyone ::error::x"))
    yield Case("429 for ever, Retry-After: 9999", says("429 Slow", "retry-after: 9999", body=b"{}"))
    yield Case("500 with a page", says("500 Oops", body=b"<html>" + MARKUP * 100_000, media="text/html"))
    yield Case("TLS, a certificate of nobody", served=self_signed)
    yield Case("TLS, half open", served=hostile.never_shakes_hands)
    yield Case("TLS, plain HTTP instead", served=plain_under_tls)


@contextlib.contextmanager
def self_signed():
    """A server whose certificate nobody vouches for."""
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "cert.pem"), Path(folder, "key.pem")
        made = ["openssl", "req", "-x509", "-nodes", "-subj", "/CN=h", "-out", files[0], "-keyout", files[1]]
        subprocess.run(made, check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
    with hostile.serving(says(), context) as server:
        yield server.base_url


@contextlib.contextmanager
def plain_under_tls():
    """A server that speaks HTTP where TLS is expected."""
    with hostile.serving(says()) as server:
        yield server.base_url.replace("http:", "https:")


@contextlib.contextmanager
def address(case, *, from_the_start):
    """Where a server behaves so."""
    if case.served is not None:
        with case.served() as url:
            yield url
        return
    with hostile.serving(case.answer if from_the_start else hostile.in_turn(says(), case.answer)) as server:
        yield server.base_url


@dataclass(frozen=True)
class Met:
    """How a run ended that met a case."""

    name: str
    code: int
    said: str
    seconds: float
    peak: float
    page: float
    wrong: str

    def __str__(self):
        return (
            f"{self.name:<34} {self.code}  {self.seconds:>6.1f} s {self.peak:>5.0f} MiB {self.page:>5.1f} MB"
            f"  {self.said[:110]}{f'  WRONG: {self.wrong}' if self.wrong else ''}"
        )


def met(case, options):
    """Run against one case, and look at what came of it."""
    folder = Path(tempfile.mkdtemp())
    try:
        with address(case, from_the_start=options.from_the_start) as url:
            words = [sys.executable, "-m", "conformance", "run", options.provider, f"--base-url={url}/v1", "--model=m"]
            words += [f"--out={folder / 'reports'}", f"--timeout={options.timeout}", f"--profile={options.profile}"]
            begun = time.perf_counter()
            with (folder / "said").open("wb") as said:
                process = subprocess.Popen(words, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
                peak = peak_of(process)
            took = time.perf_counter() - begun
        said = (folder / "said").read_bytes()
        where = folder / "reports" / options.provider
        page = where / "report.html"
        size = page.stat().st_size / 1e6 if page.exists() else 0.0
        code = process.returncode
        return Met(case.name, code, told(said), took, peak, size, "; ".join(faults(code, peak, said, where)))
    finally:
        shutil.rmtree(folder)


def peak_of(process):
    """Wait for the end of a process; its peak memory in MiB. (What wait4 tells includes that of this process.)"""
    peak = 0
    while process.poll() is None:
        with contextlib.suppress(OSError):  # it may end in this moment
            found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            peak = int(found[1]) if found else peak
        time.sleep(0.02)
    return peak / 1024


def told(said):
    """The line that matters most to whoever reads it."""
    lines = said.decode("utf-8", "replace").splitlines()
    why = next((line.strip() for line in lines if line.startswith("  incomplete:")), "")
    verdict = next((line for line in lines if re.match(r"\S+: (Conforms|Does not|Not settled)", line)), "")
    broken = sum(line.startswith("FAILED") for line in lines)
    return (
        f"{verdict.partition(': ')[2].partition('.')[0]}, {broken} broken {why}".strip() if verdict else str(lines[-1:])
    )


def faults(code, peak, said, where):
    """What must not be."""
    if code not in {0, 1, 3} or b"Traceback" in said:
        yield f"exit code {code}"
    if peak >= MOST_MEMORY:
        yield f"{peak:.0f} MiB"
    disk = sum(path.stat().st_size for path in where.rglob("*") if path.is_file()) if where.exists() else 0
    if disk > MOST_DISK:
        yield f"{disk / 1e6:.0f} MB on disk"
    if re.search(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae", said):
        yield "prints control characters"
    for name in ("report.html", "results.json", "junit.xml", "summary.md", "ctrf.json"):
        text = (where / name).read_bytes() if (where / name).exists() else b""
        if not text:
            yield f"no {name}"
        if len(text) > MOST_PAGE * 1024**2:
            yield f"{name} has {len(text) / 1e6:.0f} MB"
        if re.search(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", text):
            yield f"{name} holds control characters"
    page = (where / "report.html").read_bytes() if (where / "report.html").exists() else b""
    if b"<script>alert(1)" in page or b"<img src=x" in page:
        yield "report.html holds markup of the target"


def main():
    reader = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    reader.add_argument("--only", default="*", help="a glob of names")
    reader.add_argument("--from-the-start", action="store_true")
    reader.add_argument("--provider", default="openai")
    reader.add_argument("--profile", default="gate", choices=["gate", "full"])
    reader.add_argument("--timeout", type=float, default=5)
    reader.add_argument("--at-once", type=int, default=2)
    options = reader.parse_args()
    os.environ["CONFORMANCE_API_KEY"] = "sk-canary-0123456789abcdef"
    with hostile.serving(says()) as elsewhere:
        chosen = [one for one in cases(elsewhere.base_url) if fnmatchcase(one.name, options.only)]
        wrong = 0
        print(f"{'case':<34} exit    time      peak    page  verdict")
        with ThreadPoolExecutor(options.at_once) as pool:
            for one in pool.map(lambda case: met(case, options), chosen):
                wrong += bool(one.wrong)
                print(one, flush=True)
        if elsewhere.requests:
            sys.exit("WRONG: a redirect was followed to another host")
    print(f"{len(chosen)} cases, {wrong} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
