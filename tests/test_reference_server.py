"""The reference on a loopback socket: pieces come when they are due, and connections break where they should."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise

import httpx
import pytest

from conformance.judge.fixtures import contract
from conformance.model import Ending
from conformance.reference import Portion, Reference, Response, serve
from conformance.reference.alterations import Alteration, Stage
from conformance.reference.options import ReferenceOptions
from conformance.selftest.altered_reference import altered_reference
from conformance.selftest.faults import FAULTS
from conformance.selftest.legal_variant import LegalVariant
from conformance.selftest.legal_variants import LEGAL_VARIANTS

REQUEST = {"type": "object", "required": ["model", "prompt"]}
BODY = {"model": "reference", "prompt": "hello", "max_tokens": 4}
KEY = {"authorization": "Bearer k"}


def altered(change):
    alteration = Alteration("altered", Stage.RESPONSE, change)
    variant = LegalVariant("altered", "A response is changed for a test.", alterations=(alteration,))
    return altered_reference(contract(request=REQUEST), key="k", variants=(variant,))


def slow(response, call):
    return replace(response, portions=tuple(replace(portion, delay=0.05) for portion in response.portions))


def cut(response, call):
    return replace(response, ending=Ending.TRUNCATED)


def always(response):
    def change(_, call):
        return response

    return change


def test_a_plain_reply_is_complete_and_the_connection_stays_open():
    with serve(Reference(contract(request=REQUEST), key="k")) as url, httpx.Client(headers=KEY) as client:
        first, second = (client.post(f"{url}/completions", json=BODY) for _ in range(2))
        assert first.json()["usage"]["completion_tokens"] == 4
        assert second.status_code == 200
        assert int(first.headers["content-length"]) == len(first.content)
        assert client.post(f"{url}/completions", json=BODY, headers={"authorization": ""}).status_code == 401


def test_a_stream_comes_piece_by_piece_as_it_is_written():
    with serve(altered(slow)) as url:
        started = time.perf_counter()
        with httpx.stream("POST", f"{url}/completions", json={**BODY, "stream": True}, headers=KEY) as response:
            times = [time.perf_counter() - started for _ in response.iter_raw()]
    assert len(times) == 5
    assert all(later - sooner > 0.02 for sooner, later in pairwise(times))


def test_a_connection_is_cut_in_the_middle_of_a_reply():
    with serve(altered(cut)) as url:
        with pytest.raises(httpx.RemoteProtocolError, match="incomplete"):
            httpx.post(f"{url}/completions", json=BODY, headers=KEY)
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.post(f"{url}/completions", json={**BODY, "stream": True}, headers=KEY)


def test_a_connection_is_closed_before_any_answer():
    dead = always(Response(None, ending=Ending.TRUNCATED))
    with serve(altered(dead)) as url, pytest.raises(httpx.RemoteProtocolError, match="without sending a response"):
        httpx.post(f"{url}/completions", json=BODY, headers=KEY)


def test_a_silent_server_leaves_the_client_waiting_and_still_shuts_down():
    quiet = Response(200, (("content-type", "text/event-stream"),), (Portion(b"data: 1\n\n"),), Ending.TIMED_OUT)
    with serve(altered(always(quiet))) as url:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/completions", json=BODY, headers=KEY, timeout=0.3)
        started = time.perf_counter()
    assert time.perf_counter() - started < 5


def test_header_names_keep_their_case_and_unknown_routes_are_refused():
    def shout(response, call):
        return replace(response, headers=tuple((name.upper(), value) for name, value in response.headers))

    with serve(altered(shout)) as url:
        raw = httpx.post(f"{url}/completions", json=BODY, headers=KEY).headers.raw
        assert b"CONTENT-TYPE" in [name for name, _ in raw]
        assert httpx.get(f"{url}/elsewhere/x").status_code == 404


@pytest.mark.parametrize(
    "name", ["content_is_compressed", "bytes_come_in_odd_pieces", "connection_is_closed_each_time"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_client_reads_legal_variants_of_the_wire(name, stream):
    provider = altered_reference(contract(request=REQUEST), key="k", variants=(LEGAL_VARIANTS[name],))
    with serve(provider) as url, httpx.Client(headers=KEY) as client:
        for _ in range(2):
            response = client.post(f"{url}/completions", json={**BODY, "stream": stream})
            assert response.text.endswith("data: [DONE]\n\n") if stream else response.json()["usage"]
    assert provider.fired[name] == 2


def test_concurrent_requests_overlap():
    provider = altered_reference(
        contract(request=REQUEST), key="k", faults=(FAULTS["prompts_are_exchanged_in_a_crowd"],)
    )
    with serve(provider) as url, httpx.Client(headers=KEY) as client, ThreadPoolExecutor(2) as pool:
        bodies = [{**BODY, "temperature": 0, "prompt": prompt} for prompt in ("a", "b")]

        def text(body):
            return client.post(f"{url}/completions", json=body).json()["choices"][0]["text"]

        alone = [text(body) for body in bodies]
        assert list(pool.map(text, bodies)) != alone


def test_an_answer_may_take_its_time():
    with serve(Reference(contract(request=REQUEST), settings=ReferenceOptions(latency=0.1))) as url:
        started = time.perf_counter()
        assert httpx.post(f"{url}/completions", json=BODY).status_code == 200
        assert time.perf_counter() - started >= 0.1
