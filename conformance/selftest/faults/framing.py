"""Media types, server-sent events and the end of a stream are wrong."""

from __future__ import annotations

import json
from typing import Any

from conformance.reference.alterations import Call, Stage
from conformance.reference.core import DONE
from conformance.reference.messages import Response
from conformance.selftest.edits import (
    plain,
    portions_of,
    several,
    streaming,
    successful,
    with_content,
    with_header,
    with_portions,
)
from conformance.selftest.fault import fault, plant

UNREADABLE = (
    "echo_adds_only_the_prompt", "suffix_is_used", "done_is_sent", "usage_chunk_is_sent", "every_choice_finishes",
    "chunk_field_conforms", "usage_is_in_last_chunk", "choices_are_complete", "twin_text_agrees",
    "twin_choices_agree", "twin_finish_agrees", "twin_logprobs_agree", "twin_usage_agrees",
)  # fmt: skip

# Media types.


def _labelled(name: str, says: str, check: str, media_type: str | None, **options: Any) -> None:
    """A fault that gives successful replies another content type; None removes it."""

    def relabel(response: Response, call: Call) -> Response:
        return with_header(response, "content-type", media_type) if successful(response) else response

    plant(name, says, Stage.RESPONSE, check, relabel, **options)


_labelled(
    "stream_is_labelled_json",
    "A streamed reply declares application/json.",
    "stream_declares_event_stream",
    "application/json",
    also=("charset_is_utf8",),
    only=streaming,
    imitates="A gateway labelled event streams as JSON, and SDKs parsed them as JSON.",
)
_labelled(
    "stream_is_not_labelled",
    "A streamed reply has no content type.",
    "stream_declares_event_stream",
    None,
    also=("charset_is_utf8",),
    only=streaming,
    imitates="A proxy dropped the content type of streams.",
)
_labelled(
    "reply_is_labelled_text", "A plain reply declares text/plain.", "plain_declares_json", "text/plain", only=plain
)


@fault(
    Stage.BODY,
    "plain_declares_json",
    also=(
        "limits", "default_is_explicit", "plain_declares_json", "plain_is_one_json_text", "null_is_absent",
        "stream_has_events", "twin_choices_agree", "plain_field_conforms",
    ),
    needs=("stream",),
)  # fmt: skip
def streaming_is_the_default(body: Any, call: Call) -> Any:
    """A request without `stream` gets a stream."""
    return {**body, "stream": True} if isinstance(body, dict) and body.get("stream") is None else body


# The content of plain replies, and events.


@fault(
    Stage.RESPONSE,
    "plain_is_one_json_text",
    also=("drawn_is_accepted",
        "echo_adds_only_the_prompt", "tier_is_reported", "choices", "suffix_is_used", "twin_choices_agree",
        "plain_field_conforms",
    ),
    only=plain,
    imitates="A server appended the end mark of streams to plain JSON.",
)  # fmt: skip
def reply_ends_like_a_stream(response: Response, call: Call) -> Response:
    """A plain reply is followed by `data: [DONE]`."""
    return with_content(response, lambda data: data + b"\n\n" + DONE) if successful(response) else response


@fault(Stage.FRAMES, "body_is_utf8")
def keep_alive_is_latin_1(frames: list[bytes], call: Call) -> list[bytes]:
    """A comment in a stream is encoded in ISO-8859-1."""
    return [frames[0], b": d\xe9j\xe0 vu\n\n", *frames[1:]]


@fault(
    Stage.FRAMES,
    "stream_has_events",
    also=("drawn_is_accepted", *UNREADABLE, "last_event_is_terminated"),
    imitates="A proxy streamed bare lines of JSON.",
)
def events_are_bare_lines(frames: list[bytes], call: Call) -> list[bytes]:
    """A stream is lines of JSON without `data:` and without blank lines."""
    return [frame.removeprefix(b"data: ").rstrip() + b"\n" for frame in frames if frame != DONE]


@fault(
    Stage.FRAMES,
    "stream_payloads_are_json",
    also=("drawn_is_accepted", *UNREADABLE, "nothing_follows_done"),
    imitates="A web framework added `data:` to payloads that had it already.",
)
def data_is_prefixed_twice(frames: list[bytes], call: Call) -> list[bytes]:
    """Each event reads `data: data: {…}`."""
    return [b"data: " + frame for frame in frames]


@fault(Stage.FRAMES, "stream_payloads_are_json", imitates="A gateway sent an upstream's keep-alive comments as data.")
def comment_is_sent_as_data(frames: list[bytes], call: Call) -> list[bytes]:
    """A keep-alive comment is sent as the data of an event."""
    return [b"data: : PROCESSING\n\n", *frames]


@fault(
    Stage.FRAMES,
    "stream_payloads_are_json",
    also=(
        "choices_are_complete", "echo", "every_choice_finishes", "json_is_valid", "length_means_the_limit",
        "length_uses_the_limit", "logprobs", "relations", "stop_cuts_earliest", "twin_text_agrees",
        "twin_logprobs_agree",
    ),
    imitates="A relay took each read from the network for a complete event.",
)  # fmt: skip
def long_event_is_torn(frames: list[bytes], call: Call) -> list[bytes]:
    """The JSON of one event is split, and each half is sent as an event."""
    if len(frames) < 4:
        return frames
    payload = frames[1].removeprefix(b"data: ").rstrip()
    half = payload.index(b'"', len(payload) // 2)
    return [frames[0], b"data: " + payload[:half] + b"\n\ndata: " + payload[half:] + b"\n\n", *frames[2:]]


@fault(Stage.FRAMES, "events_are_data_only")
def events_have_names(frames: list[bytes], call: Call) -> list[bytes]:
    """Events have a name and an id."""
    return [b"event: completion\nid: %d\n" % number + frame for number, frame in enumerate(frames)]


@fault(Stage.FRAMES, "data_is_one_line")
def data_is_spread_over_lines(frames: list[bytes], call: Call) -> list[bytes]:
    """The JSON of an event is indented, and each of its lines is a `data` line."""
    payloads = [json.dumps(json.loads(frame.removeprefix(b"data: ")), indent=1).encode() for frame in frames[:-1]]
    return [*(b"data: " + payload.replace(b"\n", b"\ndata: ") + b"\n\n" for payload in payloads), frames[-1]]


# The end of a stream.


@fault(Stage.FRAMES, "done_is_sent", when=("", "sometimes"), imitates="Several servers end streams without [DONE].")
def done_is_left_out(frames: list[bytes], call: Call) -> list[bytes]:
    """The stream ends without `[DONE]`."""
    return frames[:-1]


@fault(Stage.FRAMES, "done_is_sent", only=several)
def done_is_left_out_with_several_choices(frames: list[bytes], call: Call) -> list[bytes]:
    """A stream of several choices ends without `[DONE]`."""
    return frames[:-1]


@fault(Stage.FRAMES, "done_is_sent", also=("stream_payloads_are_json",))
def done_is_lower_case(frames: list[bytes], call: Call) -> list[bytes]:
    """The stream ends with `[done]`."""
    return [*frames[:-1], b"data: [done]\n\n"]


@fault(Stage.FRAMES, "done_is_sent_once", also=("nothing_follows_done",))
def done_is_sent_for_each_choice(frames: list[bytes], call: Call) -> list[bytes]:
    """`[DONE]` is sent twice."""
    return [*frames, DONE]


@fault(Stage.FRAMES, "nothing_follows_done", only=lambda call: not call.params.include_usage)
def chunk_follows_done(frames: list[bytes], call: Call) -> list[bytes]:
    """A chunk without text is sent after `[DONE]`."""
    if len(frames) < 2:
        return frames
    last = json.loads(frames[-2].removeprefix(b"data: "))
    again = [{**choice, "text": "", "logprobs": None} for choice in last["choices"]]
    return [*frames, b"data: " + json.dumps({**last, "choices": again}).encode() + b"\n\n"]


@fault(
    Stage.FRAMES,
    "nothing_follows_done",
    only=lambda call: call.params.include_usage,
    also=("usage_chunk_is_sent",),
    needs=("stream_options",),
)
def usage_follows_done(frames: list[bytes], call: Call) -> list[bytes]:
    """The usage chunk comes after `[DONE]`."""
    return [*frames[:-2], DONE, frames[-2]]


@fault(Stage.RESPONSE, "done_is_terminated", also=("last_event_is_terminated", "done_is_sent"), only=streaming)
def done_is_not_closed(response: Response, call: Call) -> Response:
    """No blank line follows `[DONE]`."""
    if not successful(response):
        return response
    *others, last = portions_of(response)
    return with_portions(response, [*others, last.rstrip(b"\r\n") + b"\n"])


@fault(Stage.FRAMES, "last_event_is_terminated", also=("done_is_sent", "usage_chunk_is_sent", "every_choice_finishes"))
def last_chunk_is_not_closed(frames: list[bytes], call: Call) -> list[bytes]:
    """The stream ends in the middle of its last chunk's event: without a blank line, without `[DONE]`."""
    *others, last = frames[:-1] if frames[-1].startswith(b"data: [DONE]") else frames
    return [*others, last.rstrip(b"\n")]


# Errors within a stream.


@fault(
    Stage.FRAMES,
    "stream_carries_no_error",
    also=(
        "every_choice_finishes", "done_is_sent", "chunk_field_conforms", "chunk_has_choices", "usage_chunk_is_sent",
        "twin_text_agrees", "twin_finish_agrees", "twin_usage_agrees", "twin_logprobs_agree", "twin_choices_agree",
        "refusal_is_not_a_success", "usage_is_in_last_chunk", "choices_are_complete",
    ),
    only=lambda call: call.params.n > 1 or call.number % 4 == 0,
    imitates="Servers broke off streams with an error event under the status 200.",
)  # fmt: skip
def stream_breaks_off_with_an_error(frames: list[bytes], call: Call) -> list[bytes]:
    """After half of its events, the stream ends with an error event."""
    return [*frames[: len(frames) // 2], b'data: {"error":{"message":"engine stopped","type":"server_error"}}\n\n']


@fault(
    Stage.FRAMES,
    "stream_carries_no_error",
    also=("other_chunks_carry_null_usage", "refusal_is_not_a_success", "chunk_field_conforms"),
)
def stream_holds_an_error_event(frames: list[bytes], call: Call) -> list[bytes]:
    """An error event comes in the middle of a stream, which then goes on as usual."""
    event = b'data: {"error":{"message":"retrying","type":"server_error","param":null,"code":null}}\n\n'
    return [*frames[:1], event, *frames[1:]]
