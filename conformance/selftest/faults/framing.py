"""The outer form of a reply is broken: media types, events, the end of a stream."""

from __future__ import annotations

import json

from conformance.reference.alterations import Call, Stage
from conformance.reference.core import DONE
from conformance.reference.messages import Response
from conformance.selftest.edits import headed, in_pieces, pieces_of, plain, reworded, several, streaming, successful
from conformance.selftest.fault import fault


@fault(
    Stage.RESPONSE,
    "stream_declares_event_stream",
    also=("charset_is_utf8",),
    only=streaming,
    imitates="A gateway labelled event streams as JSON, and SDKs parsed them as one.",
)
def stream_is_labelled_json(response: Response, call: Call) -> Response:
    """A streamed reply declares application/json."""
    return headed(response, "content-type", "application/json") if successful(response) else response


@fault(
    Stage.RESPONSE,
    "stream_declares_event_stream",
    also=("charset_is_utf8",),
    only=streaming,
    imitates="A proxy dropped the content type of streams.",
)
def stream_is_not_labelled(response: Response, call: Call) -> Response:
    """A streamed reply has no content type."""
    return headed(response, "content-type", None) if successful(response) else response


@fault(Stage.RESPONSE, "plain_declares_json", only=plain)
def reply_is_labelled_text(response: Response, call: Call) -> Response:
    """A plain reply declares text/plain."""
    return headed(response, "content-type", "text/plain") if successful(response) else response


@fault(
    Stage.RESPONSE,
    "plain_is_one_json_text",
    also=(
        "echo_adds_only_the_prompt",
        "tier_is_reported",
        "choices",
        "suffix_is_used",
        "twin_choices_agree",
        "plain_field_conforms",
    ),
    only=plain,
    imitates="A server appended the end mark of streams to plain JSON.",
)
def reply_ends_like_a_stream(response: Response, call: Call) -> Response:
    """A plain reply is followed by `data: [DONE]`."""
    return reworded(response, lambda data: data + b"\n\n" + DONE) if successful(response) else response


@fault(Stage.FRAMES, "body_is_utf8")
def keep_alive_is_latin_1(frames: list[bytes], call: Call) -> list[bytes]:
    """A comment in a stream is not UTF-8."""
    return [frames[0], b": d\xe9j\xe0 vu\n\n", *frames[1:]]


@fault(
    Stage.FRAMES,
    "stream_has_events",
    also=(
        "echo_adds_only_the_prompt",
        "suffix_is_used",
        "done_is_sent",
        "last_event_is_terminated",
        "usage_chunk_is_sent",
        "every_choice_finishes",
        "chunk_field_conforms",
        "usage_is_in_last_chunk",
        "choices_are_complete",
        "twin_text_agrees",
        "twin_choices_agree",
        "twin_finish_agrees",
        "twin_logprobs_agree",
        "twin_usage_agrees",
    ),
    imitates="A proxy streamed bare lines of JSON.",
)
def events_are_bare_lines(frames: list[bytes], call: Call) -> list[bytes]:
    """A stream is lines of JSON without `data:` and without blank lines."""
    return [frame.removeprefix(b"data: ").rstrip() + b"\n" for frame in frames if frame != DONE]


@fault(
    Stage.FRAMES,
    "stream_payloads_are_json",
    also=(
        "echo_adds_only_the_prompt",
        "suffix_is_used",
        "done_is_sent",
        "twin_text_agrees",
        "every_choice_finishes",
        "usage_chunk_is_sent",
        "choices_are_complete",
        "twin_choices_agree",
        "twin_finish_agrees",
        "twin_logprobs_agree",
        "twin_usage_agrees",
        "usage_is_in_last_chunk",
        "chunk_field_conforms",
        "nothing_follows_done",
    ),
    imitates="A web framework added `data:` to payloads that had it already.",
)
def data_is_prefixed_twice(frames: list[bytes], call: Call) -> list[bytes]:
    """Each event reads `data: data: {…}`."""
    return [b"data: " + frame for frame in frames]


@fault(
    Stage.FRAMES, "stream_payloads_are_json", imitates="A gateway sent an upstream's keep-alive comments on as data."
)
def comment_is_sent_as_data(frames: list[bytes], call: Call) -> list[bytes]:
    """A keep-alive comment comes as the data of an event."""
    return [b"data: : PROCESSING\n\n", *frames]


@fault(
    Stage.FRAMES,
    "stream_payloads_are_json",
    also=(
        "choices_are_complete",
        "echo",
        "every_choice_finishes",
        "json_is_valid",
        "length_means_the_limit",
        "length_uses_the_limit",
        "logprobs",
        "relations",
        "stop_cuts_earliest",
        "twin_text_agrees",
        "twin_logprobs_agree",
    ),
    imitates="A relay took each read from the network for one whole event.",
)
def long_event_is_torn(frames: list[bytes], call: Call) -> list[bytes]:
    """An event is torn in two, and both halves are sent as events."""
    if len(frames) < 4:
        return frames
    whole = frames[1].removeprefix(b"data: ").rstrip()
    half = whole.index(b'"', len(whole) // 2)
    return [frames[0], b"data: " + whole[:half] + b"\n\ndata: " + whole[half:] + b"\n\n", *frames[2:]]


@fault(Stage.FRAMES, "done_is_sent", variants=("", "sometimes"), imitates="Several servers end streams in silence.")
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
    """`[DONE]` comes once more for each choice."""
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
    pieces = pieces_of(response)
    return in_pieces(response, [*pieces[:-1], pieces[-1].rstrip(b"\r\n") + b"\n"]) if successful(response) else response


@fault(Stage.FRAMES, "last_event_is_terminated", also=("done_is_sent", "usage_chunk_is_sent", "every_choice_finishes"))
def last_chunk_is_not_closed(frames: list[bytes], call: Call) -> list[bytes]:
    """The stream ends in the middle of its last chunk's event: no blank line, no `[DONE]`."""
    *others, last = frames[:-1] if frames[-1].startswith(b"data: [DONE]") else frames
    return [*others, last.rstrip(b"\n")]


@fault(Stage.FRAMES, "events_are_data_only")
def events_have_names(frames: list[bytes], call: Call) -> list[bytes]:
    """Events have a name and an id."""
    return [b"event: completion\nid: %d\n" % place + frame for place, frame in enumerate(frames)]


@fault(Stage.FRAMES, "data_is_one_line")
def data_is_spread_over_lines(frames: list[bytes], call: Call) -> list[bytes]:
    """The JSON of an event is indented, and each of its lines is a `data` line."""
    told = [json.dumps(json.loads(frame.removeprefix(b"data: ")), indent=1).encode() for frame in frames[:-1]]
    return [*(b"data: " + one.replace(b"\n", b"\ndata: ") + b"\n\n" for one in told), frames[-1]]


@fault(
    Stage.FRAMES,
    "stream_carries_no_error",
    also=(
        "every_choice_finishes",
        "done_is_sent",
        "chunk_field_conforms",
        "chunk_has_choices",
        "usage_chunk_is_sent",
        "twin_text_agrees",
        "twin_finish_agrees",
        "twin_usage_agrees",
        "twin_logprobs_agree",
        "twin_choices_agree",
        "refusal_is_not_a_success",
        "usage_is_in_last_chunk",
        "choices_are_complete",
    ),
    only=lambda call: call.params.n > 1 or call.number % 4 == 0,
    imitates="Servers broke off streams with an error event under a status of 200.",
)
def stream_breaks_off_with_an_error(frames: list[bytes], call: Call) -> list[bytes]:
    """Half of the stream is followed by an error event, and nothing more."""
    return [*frames[: len(frames) // 2], b'data: {"error":{"message":"engine stopped","type":"server_error"}}\n\n']


@fault(
    Stage.FRAMES,
    "stream_carries_no_error",
    also=("other_chunks_carry_null_usage", "refusal_is_not_a_success", "chunk_field_conforms"),
)
def stream_holds_an_error_event(frames: list[bytes], call: Call) -> list[bytes]:
    """An error event stands in the middle of a stream that goes on as if nothing had happened."""
    note = b'data: {"error":{"message":"retrying","type":"server_error","param":null,"code":null}}\n\n'
    return [*frames[:1], note, *frames[1:]]
