"""Stop sequences of every class of text, made from texts of the target: those that occur must stop, others must not.

A server may match stop sequences as patterns, without regard to letter case, stripped, unescaped or normalised. That
shows only beside a text that such a sequence would match by mistake, so the sequences follow from a batch of replies.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.model import RequestCase
from conformance.model.json_text import dumps
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PlanContext, part
from conformance.plan.factors import STREAM, USAGE

# A model goes on as a text begins, so that these lead to texts with characters that code treats specially.
PROVOKING: Final = (
    "a.*b [c] (d) $e ^f |g {h} a.*b [c] (d) $e ^f",
    '<b class="x">&amp;</b>\n<i class="y">&lt;</i>\n<b',
    '{"a": 1, "b": [2, 3]}\n{"a": 4, "b"',
    "東京、大阪、名古屋、京都、東京、大阪、",
    "Grüße, Café, Größe, naïve, Grüße, Café,",
    "\N{ROCKET} \N{EVERGREEN TREE} \N{ROCKET} \N{EVERGREEN TREE} \N{ROCKET}",
    "C:\\temp\\new\\x, C:\\temp\\new\\y, C:\\",
    "Blue\nGold\nWhite\n",
)
# What a stop sequence of each class consists of.
OCCURRING: Final[Mapping[str, re.Pattern[str]]] = {
    "a regular expression": re.compile(r"[.^$*+?{}\[\]\\|()]+"),
    "characters of two bytes": re.compile("[\u0080-\u07ff]+"),
    "characters of three bytes": re.compile("[\u0800-\ud7ff]+"),
    "characters of four bytes": re.compile("[\U00010000-\U0010ffff]+"),
    "a backslash": re.compile(r"\\+\w?"),
    "a line break": re.compile(r"[\r\n]+"),
    "white space around a word": re.compile(r"\s\w+\s"),
    "white space alone": re.compile(r"[ \t]+"),
    "HTML special characters": re.compile(r"[<>&\"']+"),
    "JSON special characters": re.compile(r"[{}\[\]\":]+"),
    "SQL special characters": re.compile(r"[%_;'-]+"),
    "a capital": re.compile(r"[A-Z]\w?"),
    "a digit": re.compile(r"\d"),
    "several words": re.compile(r"\w+\W+\w+"),
}
TOKENS: Final = 16  # of each text, so that several classes occur
SEQUENCES: Final = 4  # in one request: no contract surely allows more
MOST: Final = 6  # lists of each kind
KINDS: Final = ("cut", "never")  # sequences that occur, and those that do not
WAYS: Final[Mapping[str, Mapping[str, Any]]] = {"plain": {}, "streamed": STREAM.patch}
LONGEST: Final = 12  # characters of a sequence
ASSUMED_TEXTS: Final = (
    "a.b (c",
    " <b>\n",
    '{"a": 1',
    "、東京、",
    " Grüße, Ca",
    " \N{ROCKET} ",
    "temp\\new 7",
    "one Two; three",
)


def stop_classes(context: PlanContext) -> Iterator[CaseGroup]:
    """The batch whose texts lead to the sequences; and, when it was answered, the same with the sequences."""
    if not context.full or not context.greedy or not {"cut", "never"} <= context.kinds:
        return
    body = context.body({"prompt": list(PROVOKING), "max_tokens": TOKENS})
    if not context.has("stop", "max_tokens") or not context.may_send(body):
        return
    without = [part(kind, _key(index, way), "without") for kind in KINDS for index in range(MOST) for way in WAYS]
    assumed = tuple(_cases(context, body, ASSUMED_TEXTS))
    then = CaseGroup("learned", Rank.NORMAL, assumed)
    yield CaseGroup("rows", Rank.NORMAL, (context.case("relation", body, *without),), then=then)
    texts = [context.known.text(dumps(body).encode(), index) for index in range(len(PROVOKING))]
    yield from (CaseGroup("learned", Rank.NORMAL, (case,)) for case in _cases(context, body, texts))


def _cases(context: PlanContext, body: Mapping[str, Any], texts: Sequence[str]) -> Iterator[RequestCase]:
    """The batch with each list of sequences, plain and streamed, with usage every other time."""
    if not any(texts):
        return
    several = context.may_send({**body, "stop": ["a", "b"]})
    size = SEQUENCES if several else 1
    for kind, lists in zip(KINDS, (occurring(texts, size), _packed(absent(texts), size)), strict=True):
        for index, stops in enumerate(lists[:MOST]):
            for way, patch in WAYS.items():
                channel = USAGE.patch if patch and index % 2 and context.has("stream_options") else patch
                changed = context.body(body, {"stop": stops if several else stops[0]}, channel)
                if context.has(*channel.keys() - {"stream_options"}) and context.may_send(changed):
                    origin = "cut" if kind == "cut" else "relation"
                    yield context.case(origin, changed, part(kind, _key(index, way), "with"))


def _key(index: int, way: str) -> str:
    return f"stop of class {index} {way}"


def _packed(sequences: Sequence[str], size: int) -> list[list[str]]:
    return [list(sequences[start : start + size]) for start in range(0, len(sequences), size)]


def occurring(texts: Sequence[str], size: int) -> list[list[str]]:
    """A sequence of each class that occurs, in lists of this size at most: each of them cuts some text first."""
    lists: list[list[str]] = []
    for pattern in OCCURRING.values():
        sequences = list(dict.fromkeys(_matches(pattern, texts)))
        if any(set(sequences) & set(stops) for stops in lists):
            continue
        for stops in lists:
            fitting = next(
                (stop for stop in sequences if len(stops) < size and _each_cuts(texts, [*stops, stop])), None
            )
            if fitting is not None:
                stops.append(fitting)
                break
        else:
            lists += [[sequences[0]]] if sequences else []
    return lists


def _matches(pattern: re.Pattern[str], texts: Sequence[str]) -> Iterator[str]:
    """What fits a class, not at the beginning of a text where that is possible."""
    matches = [match for text in texts for match in pattern.finditer(text) if "\ufffd" not in match[0]]
    for match in sorted(matches, key=lambda match: match.start() == 0):
        if len(match[0]) <= LONGEST:
            yield match[0]


def _each_cuts(texts: Sequence[str], stops: Sequence[str]) -> bool:
    """Whether each of the sequences is the first to occur in some text, and begins within no other one there."""
    cutting = set()
    for text in texts:
        places = sorted((text.find(stop), stop) for stop in stops if stop in text)
        if places and all(place >= places[0][0] + len(places[0][1]) for place, _ in places[1:]):
            cutting.add(places[0][1])
    return cutting == set(stops)


def absent(texts: Sequence[str]) -> list[str]:
    """Sequences that occur in no text, and that a server finds if it reads them as anything but what they are."""
    words = [word for text in texts for word in re.findall(r"[A-Za-z]{3,}", text)]
    word = max(dict.fromkeys(words), key=words.count) if words else "one"
    first, rest = word[0], word[1:]
    sequences = (
        ".*",  # patterns
        f"[{word}]+",
        f"{first}.{word[2:]}",
        f"{word}|\\w",
        "\\",
        "(",
        f"%{rest}%",
        f"{first}*",
        word.swapcase(),  # another spelling
        f" \t{word}\n ",
        f"{word}\0",
        "".join(chr(ord(char) + 0xFEE0) for char in word),
        f"\\u{ord(first):04x}{rest}",  # escapes
        f"&#{ord(first)};{rest}",
        f"%{ord(first):02X}{rest}",
        f"{first}\u200b{rest}",
        "\u2028",  # characters that encoders drop or replace
        "\u65e5\u672c\u8a9e\u00e9",
        "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}",
        "data: [DONE]\n\n",
    )
    return [sequence for sequence in sequences if not any(sequence in text for text in texts)]


__all__ = ["OCCURRING", "PROVOKING", "absent", "occurring", "stop_classes"]
