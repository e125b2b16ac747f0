"""The reference as a provider: what it answers, judged by hand on the contract of the examples."""

import json
from dataclasses import replace

import pytest

from conformance.judge.fixtures import case, contract
from conformance.model import Combination, Credential, Ending, Layer, Level, Limit, Requirement, Source, Validity
from conformance.reference import Reference, Request, respond
from conformance.reference.language_model import Endings, LanguageModel
from conformance.selftest.in_process import exchange

REQUEST = {
    "type": "object",
    "required": ["model", "prompt"],
    "properties": {
        "model": {"type": "string"},
        "temperature": {"type": ["number", "null"]},
        "n": {"type": ["integer", "null"]},
        "stop": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
    },
}


def requirement(check, **params):
    return Requirement(f"test.{check}", check, Level.MUST, Layer.CONTRACT, "", Source(""), params=params)


def documented(**changes):
    bare = contract(request=REQUEST, limits=(Limit("temperature", 0, 2), Limit("n", 1, 128)), **changes)
    schemas = REQUEST["properties"]
    parameters = {name: replace(parameter, schema=schemas.get(name, {})) for name, parameter in bare.parameters.items()}
    return replace(bare, parameters=parameters)


QUIET = LanguageModel(endings=Endings.NEVER)


def provider(made=None, **more):
    return Reference(made or documented(), **{"model": QUIET, **more})


def ask(of=None, **body):
    return exchange(of or provider(), case({"model": "reference", **body}))


def texts(x):
    return {index: choice.text for index, choice in x.choices.items()}


def test_a_plain_reply_has_all_members():
    x = ask(max_tokens=5)
    assert x.status == 200
    assert x.media_type == "application/json"
    assert x.json.keys() == {"id", "object", "created", "model", "choices", "usage"}
    assert x.usage["completion_tokens"] == 5
    assert x.choices[0].finish_reason == "length"


def test_a_stream_has_the_same_texts_as_the_plain_reply():
    plain, stream = ask(temperature=0, n=2, logprobs=2), ask(temperature=0, n=2, logprobs=2, stream=True)
    assert texts(plain) == texts(stream)
    assert plain.choices[1].logprobs == stream.choices[1].logprobs
    assert stream.messages[-1].data == "[DONE]"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("logprobs", [None, 0, 2])
@pytest.mark.parametrize("prompt", ["one é two", ["a", "bb"], [1, 2, 3], [[1], [2, 3]]])
def test_every_combination_of_options_gives_consistent_choices(stream, n, echo, logprobs, prompt):
    x = ask(prompt=prompt, n=n, echo=echo, logprobs=logprobs, stream=stream, max_tokens=6)
    prompts = 2 if isinstance(prompt[0], list) or prompt == ["a", "bb"] else 1
    assert list(x.choices) == list(range(prompts * n))
    for choice in x.choices.values():
        if echo and isinstance(prompt, str):
            assert choice.text.startswith(prompt)
        if logprobs is None:
            assert choice.logprobs is None
            continue
        lists = choice.logprobs
        assert "".join(lists["tokens"]) == choice.text
        assert len({len(one) for one in lists.values()}) == 1
        first = lists["text_offset"][0]
        assert (first == 0) is echo
        for at, token in zip(lists["text_offset"], lists["tokens"], strict=True):
            assert choice.text[at - first :].startswith(token)


def test_a_batch_is_its_prompts_alone():
    both = ask(prompt=["a", "b"], temperature=0, n=2)
    alone = [ask(prompt=one, temperature=0) for one in "ab"]
    assert texts(both) == {number: texts(alone[number // 2])[0] for number in range(4)}
    assert both.usage["prompt_tokens"] == sum(x.usage["prompt_tokens"] for x in alone)


def test_seeds_repeat_and_unseeded_draws_vary():
    of = provider()
    assert texts(ask(of, seed=7)) == texts(ask(of, seed=7))
    assert len({texts(ask(of))[0] for _ in range(6)}) == 6


def test_two_references_reply_alike_to_the_same_requests():
    assert [texts(ask(one)) for one in [provider()] * 3] == [texts(ask(one)) for one in [provider()] * 3]


def test_best_of_returns_the_likeliest_and_counts_all():
    of = provider()
    x = ask(of, n=2, best_of=5, logprobs=0, max_tokens=8)
    means = [sum(choice.logprobs["token_logprobs"]) / 8 for choice in x.choices.values()]
    assert means == sorted(means, reverse=True)
    assert x.usage["completion_tokens"] == 40


def test_echo_with_zero_tokens_scores_the_prompt():
    x = ask(prompt="The river", echo=True, max_tokens=0, logprobs=1)
    assert texts(x) == {0: "The river"}
    assert x.choices[0].logprobs["token_logprobs"][0] is None
    assert x.usage["completion_tokens"] == 0


def test_a_suffix_matters():
    assert texts(ask(temperature=0)) != texts(ask(temperature=0, suffix="the end"))


def test_parameters_that_the_contract_does_not_name_do_nothing():
    assert texts(ask(temperature=0)) == texts(ask(temperature=0, ignore_eos=True, foo=[1]))


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"temperature": 2.5}, "temperature"),
        ({"n": 0}, "n"),
        ({"n": "two"}, "n"),
        ({"stop": 5}, "stop"),
        ({"model": None}, "model"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_the_contract_calls_invalid_is_refused_by_name(body, param, stream):
    x = ask(stream=stream, **body)
    assert (x.status, x.media_type) == (400, "application/json")
    assert x.error["error"]["param"] == param


def test_a_combination_is_refused_where_the_contract_says_so():
    made = documented(combinations=(Combination("pair", Validity.INVALID, {"stream": True}, ("best_of",)),))
    assert ask(provider(made), stream=True, best_of=2).status == 400
    assert ask(provider(made), best_of=2).status == 200


VALIDATION = {
    "type": "object",
    "properties": {
        "detail": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["loc", "msg", "type"],
                "properties": {
                    "loc": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
                    "msg": {"type": "string"},
                    "type": {"type": "string"},
                },
            },
        }
    },
}
STRINGS = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message", "param", "type"],
            "properties": {name: {"type": "string"} for name in ("code", "message", "param", "type")},
        }
    },
}


def test_errors_have_the_documented_shape():
    listed = ask(provider(documented(errors={"422": VALIDATION})), temperature=3, n=0)
    assert listed.status == 422
    assert [item["loc"] for item in listed.json["detail"]] == [["body", "n"], ["body", "temperature"]]
    strings = ask(provider(documented(errors={"400": STRINGS, "401": STRINGS}), key="k"), temperature=3)
    assert (strings.status, set(map(type, strings.json["error"].values()))) == (400, {str})
    unknown = exchange(provider(documented(errors={"400": STRINGS})), case({"model": "none"}))
    assert (unknown.status, unknown.json["error"]["param"]) == (400, "model")


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"path": "/elsewhere"}, 404),
        ({"method": "GET"}, 405),
        ({"credential": Credential.NONE}, 401),
        ({"credential": Credential.WRONG}, 401),
        ({"credential": Credential.LOWERCASE_SCHEME}, 200),
        ({"credential": Credential.OTHER_SCHEME}, 401),
        ({"credential": Credential.NO_SCHEME}, 401),
        ({"credential": Credential.TWICE}, 400),
        ({"headers": (("content-type", "text/plain"),)}, 415),
        ({"headers": ()}, 415),
        ({"content": b"{"}, 400),
        ({"content": b""}, 400),
        ({"content": b"[]"}, 400),
        ({"content": b"[" * 100_000}, 400),
        ({"content": b'{"model":"reference","prompt":"\xff"}'}, 400),
        ({"content": b'{"model":"reference","prompt":"a","temperature":NaN}'}, 400),
        ({"content": b'{"model":"reference","prompt":"a","temperature":1e999}'}, 400),
    ],
)
def test_the_protocol_is_kept(change, status):
    whole = case({"model": "reference"})
    assert exchange(provider(key="secret"), replace(whole, **change)).status == status


def test_a_request_beyond_the_context_is_refused_or_truncated_as_promised():
    small = replace(QUIET, context=20)
    assert ask(provider(model=small), max_tokens=30).status == 400
    cut = ask(
        provider(documented(requirements=(requirement("context_overflow", behaviour="truncate"),)), model=small),
        max_tokens=30,
    )
    assert cut.usage["total_tokens"] == 20
    assert ask(provider(model=small), prompt="word " * 40).status == 400


def test_any_contract_is_kept():
    made = documented(
        path="/v9/write",
        requirements=(
            requirement("length_means_the_limit", reason="full"),
            requirement("stop_finishes_with_stop", reason="done"),
            requirement("stop_text_is_as_promised", text="included"),
            requirement("usage_is_in_last_chunk", unasked=True),
        ),
        response={
            "required": ["id", "choices", "usage", "region"],
            "properties": {"region": {"type": "string", "enum": ["north"]}, "object": {"const": "writing"}},
        },
    )
    of = provider(made)
    x = ask(of, max_tokens=8, stream=True, temperature=0)
    assert x.documents[-1].value["usage"]["completion_tokens"] == 8
    assert (x.documents[0].value["region"], x.documents[0].value["object"]) == ("north", "writing")
    assert x.choices[0].finish_reason == "full"
    stop = x.choices[0].text[4:9]
    stopped = ask(of, max_tokens=8, stream=True, temperature=0, stop=stop)
    assert stopped.choices[0].text.endswith(stop)
    assert stopped.choices[0].finish_reason == "done"


@pytest.mark.parametrize("asked", [False, True])
def test_usage_comes_in_a_chunk_of_its_own_when_asked_for(asked):
    x = ask(stream=True, stream_options={"include_usage": asked})
    usages = [document.usage for document in x.documents]
    if asked:
        assert usages[:-1] == [None] * (len(usages) - 1)
        assert (x.documents[-1].choices, usages[-1]["total_tokens"]) == ([], 22)
    else:
        assert not any(usages)


def test_a_client_that_hangs_up_keeps_what_it_had():
    x = exchange(provider(), replace(case({"model": "reference", "stream": True}), hang_up_after=3))
    assert (x.ending, len(x.pieces)) == (Ending.ABANDONED, 3)


@pytest.mark.parametrize(
    "body",
    [
        {"prompt": []}, {"prompt": None}, {"prompt": ""}, {"prompt": [""]}, {"prompt": [1.0]}, {"prompt": "\ud800"},
        {"prompt": [10**30]}, {"prompt": [-5]}, {"max_tokens": 1.0}, {"max_tokens": None}, {"logprobs": 10**6},
        {"logit_bias": {"x": 1, "5": 10**400, "99999999999999999999": 3}}, {"seed": 10**400}, {"seed": -1},
        {"temperature": 1e-320}, {"stop": ["", "\x00"]}, {"best_of": 0}, {"n": 128, "best_of": 10**9}, {"prompt": [[]]},
        {"presence_penalty": 1e308, "frequency_penalty": -1e308}, {"top_p": 10**400, "max_tokens": 10**400},
        {"stream_options": {}}, {"stream_options": "yes", "stream": "maybe"}, {"user": {}},
    ],
)  # fmt: skip
def test_unusual_values_do_not_crash_it(body):
    assert ask(**body).status in {200, 400}


def test_json_is_written_where_a_format_asks_for_it():
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x"]}}, "required": ["a", "b"]}
    made = documented()
    known = {**made.parameters, "response_format": replace(made.parameters["user"], name="response_format")}
    of = provider(replace(made, parameters=known))
    x = ask(of, response_format={"type": "json_object"}, max_tokens=64)
    assert isinstance(json.loads(x.choices[0].text), dict)
    assert x.choices[0].finish_reason == "stop"
    y = ask(of, response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}, max_tokens=64)
    assert json.loads(y.choices[0].text) == {"a": 0, "b": "x"}


def test_an_unparsed_request_still_gets_an_answer():
    assert respond(provider(), Request("BREW", "/", "", (), b"\xff")).status == 404
