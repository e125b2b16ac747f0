"""Timing: when bytes arrived at this client. Observed, never judged, because networks and load differ."""

from __future__ import annotations

from itertools import pairwise

from conformance.judge.catalogue import CheckContext, Findings, Scope, check
from conformance.judge.fixtures import choice, completion, example, plain, stream
from conformance.model import Observation
from conformance.model.exchange import Exchange


def about(seconds: float) -> str:
    """A time in classes so coarse that two runs usually agree."""
    for bound in (0.1, 0.3, 1, 3, 10, 30):
        if seconds < bound:
            return f"under {bound:g} s"
    return "30 s or more"


@check(
    "timing",
    Scope.SUCCESS,
    good=lambda: example(plain(completion(choice()))),
    bad=lambda: example(stream(completion(choice()))),
)
def first_byte_time(x: Exchange, context: CheckContext) -> Findings:
    """The time from the request to the first byte of the body.

    It is how long a user waits before anything appears; streams exist to make it short.

    Fix: send the first chunk as soon as the first token is generated.
    """
    if x.pieces:
        yield Observation(
            "time to the first byte of a stream" if x.streamed else "time to a plain reply", about(x.pieces[0].at)
        )


@check(
    "timing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice(finish=None)), completion(choice()))),
    bad=lambda: example(stream(completion(choice(finish=None)), completion(choice()))),
)
def stream_arrives_in_pieces(x: Exchange, context: CheckContext) -> Findings:
    """Whether a stream of several chunks arrives in several pieces.

    A proxy that buffers turns a stream into a plain reply: everything arrives at once, at the end.

    Fix: switch off response buffering in proxies (`X-Accel-Buffering: no` for nginx), and flush each event.
    """
    if len(x.messages) > 2 and x.pieces:
        several = len({round(piece.at, 3) for piece in x.pieces}) > 1
        yield Observation("a stream of several chunks arrives", "in several pieces" if several else "all at once")


@check(
    "timing",
    Scope.STREAM,
    good=lambda: example(stream(completion(choice(finish=None)), completion(choice()))),
    bad=lambda: example(stream(completion(choice(finish=None)), completion(choice()))),
)
def longest_silence(x: Exchange, context: CheckContext) -> Findings:
    """The longest time between two pieces of a stream.

    Clients and proxies close a stream that is silent for longer than their idle time-out.

    Fix: send a comment (`: …`) every few seconds while there is nothing else to send.
    """
    if len(x.pieces) > 1:
        gap = max(later.at - earlier.at for earlier, later in pairwise(x.pieces))
        yield Observation("longest silence within a stream", about(gap))
