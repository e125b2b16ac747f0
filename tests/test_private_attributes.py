"""Private attributes of libraries that are used because nothing public serves: each is still what it was."""

import asyncio
import json.encoder
import platform
from importlib.metadata import version

import hostile
from hostile import serving
from hypothesis.internal.conjecture import providers

from conformance.judge.fixtures import case
from conformance.model.json_text import dumps
from conformance.send import Target, TimeoutPolicy
from conformance.send.wire import Wire


def gone(attribute: str, library: str, seen: str, used_in: str, public: str) -> str:
    return f"{attribute} is gone from {library}; it was there in {seen}; {used_in} needs it to {public}"


def test_the_connections_of_httpx_show_bytes_that_were_read_and_belong_to_no_response():
    libraries = f"httpcore {version('httpcore')} or h11 {version('h11')}"
    message = gone(
        "_pool, _connection or _h11_state", libraries, "httpcore 1.0.9", "send/wire.py", "drop leftover bytes"
    )

    async def kept_connections(base_url):
        wire = Wire(Target(base_url, "/completions"), TimeoutPolicy(), 1)
        try:
            await wire.attempt(case({}))
            return list(wire._transport._pool.connections)
        finally:
            await wire.aclose()

    with serving(hostile.says()) as server:
        connections = asyncio.run(kept_connections(server.base_url))
    assert len(connections) == 1, message
    protocol = getattr(getattr(connections[0], "_connection", None), "_h11_state", None)
    assert protocol is not None, message
    assert protocol.trailing_data == (b"", False), message


def test_the_encoder_that_json_makes_for_each_call_can_be_made_once():
    python = f"{platform.python_implementation()} {platform.python_version()}"
    message = gone("json.encoder.c_make_encoder", python, "CPython 3.11 to 3.13", "model/json_text.py", "encode fast")
    assert callable(getattr(json.encoder, "c_make_encoder", None)), message
    value = {"text": "é\ud83d", "numbers": [1, 1.5, -0.0, 1e300], "nothing": None, "empty": {}}
    assert dumps(value) == json.dumps(value, separators=(",", ":"))


def test_hypothesis_takes_constants_from_where_plans_replace_them():
    library = f"hypothesis {version('hypothesis')}"
    message = gone(
        "_get_local_constants or CONSTANTS_CACHE", library, "6.170.15", "plan/samples.py", "draw alike anywhere"
    )
    assert callable(getattr(providers, "_get_local_constants", None)), message
    assert hasattr(getattr(providers, "CONSTANTS_CACHE", None), "cache"), message
