"""Texts of one class are damaged on their way: prompts before they are echoed, stop sequences before they are matched.

Each fault is a row of a table, which says what happens to the text, times a path of the server on which it does.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final
from urllib.parse import unquote_plus

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters
from conformance.reference.responses import Text
from conformance.selftest.edits import Json, choices, several_prompts, stop_reason, streaming, with_text
from conformance.selftest.fault import Condition, plant
from conformance.selftest.faults.plain_streamed import TEXT
from conformance.selftest.faults.stop import IGNORED

Rewrite = Callable[[str], str]

# What happens to a text, and the sentence that says so.
DAMAGE: Final[Mapping[str, tuple[Rewrite, str]]] = {
    "composed": (lambda text: unicodedata.normalize("NFC", text), "is normalised to NFC"),
    "decomposed": (lambda text: unicodedata.normalize("NFD", text), "is normalised to NFD"),
    "folded": (lambda text: unicodedata.normalize("NFKC", text), "is normalised to NFKC"),
    "given_line_feeds": (lambda text: text.replace("\r\n", "\n").replace("\r", "\n"), "gets other line breaks"),
    "stripped": (str.strip, "loses the white space around it"),
    "put_on_one_line": (lambda text: re.sub(r"\s+", " ", text), "has its white space reduced to single spaces"),
    "escaped_for_html": (html.escape, "is escaped for HTML"),
    "unescaped_from_html": (html.unescape, "has its HTML escapes resolved"),
    "unescaped_from_urls": (unquote_plus, "has its URL escapes resolved"),
    "unescaped": (lambda text: text.replace("\\n", "\n").replace("\\\\", "\\"), "has its backslashes resolved"),
    "quoted_for_sql": (lambda text: text.replace("'", "''"), "has its apostrophes doubled"),
    "cut_at_nul": (lambda text: text.split("\0")[0], "ends at its first NUL"),
    "cleared_of_controls": (
        lambda text: "".join(char for char in text if char >= " " or char in "\t\r\n"),
        "loses its control characters",
    ),
    "cleared_of_marks": (
        lambda text: "".join(char for char in text if unicodedata.category(char) != "Cf"),
        "loses its invisible characters",
    ),
    "reduced_to_ascii": (lambda text: text.encode("ascii", "ignore").decode(), "loses what is not ASCII"),
    "reduced_to_the_first_plane": (
        lambda text: "".join(char for char in text if char < "\U00010000"),
        "loses its characters of four bytes",
    ),
}
# Where it does.
PATHS: Final[Mapping[str, tuple[Condition | None, str]]] = {
    "": (None, "."),
    "_in_streams": (streaming, ", in streams only."),
    "_of_batches": (several_prompts, ", in batches only."),
}
BESIDES: Final = (
    "tokens_join_to_text", "text_offsets_follow_tokens", "echo_adds_only_the_prompt", "logprobs_cover_echo",
    "echo_of_zero_tokens", "relations", "usage", "logprobs", "stop", "unicode", "effects", "concurrency", "choices",
    "max_tokens_zero", "completion_tokens_within_limit",
)  # fmt: skip


def _prompts(rewrite: Rewrite) -> Callable[[list[Text], Call], list[Text]]:
    def change(texts: list[Text], call: Call) -> list[Text]:
        if not call.params.echo:
            return texts
        return [
            text
            if text.prompt.given_as_tokens
            else replace(text, prompt=replace(text.prompt, text=rewrite(text.prompt.text)))
            for text in texts
        ]

    return change


def _stops(rewrite: Rewrite) -> Callable[[GenerationParameters, Call], GenerationParameters]:
    def change(params: GenerationParameters, call: Call) -> GenerationParameters:
        return replace(params, stops=tuple(filter(None, map(rewrite, params.stops))))

    return change


def _generated(rewrite: Rewrite) -> Callable[[list[Json], Call], list[Json]]:
    def change(documents: list[Json], call: Call) -> list[Json]:
        for choice in choices(documents):
            choice["text"] = rewrite(choice["text"])
        return documents

    return change


# What stop sequences are read as: patterns that match more than the sequence, or other texts.
READ_AS: Final[Mapping[str, tuple[Callable[[str], str], int, str]]] = {
    "patterns": (lambda stop: stop, 0, "are read as regular expressions"),
    "words_of_any_case": (re.escape, re.IGNORECASE, "match in any letter case"),
    "wildcards": (lambda stop: re.escape(stop).replace(r"\*", ".*").replace("%", ".*"), 0, "are read as wildcards"),
    "stripped": (lambda stop: re.escape(stop.strip()), 0, "are stripped before they are matched"),
    "c_strings": (lambda stop: re.escape(stop.split("\0")[0]), 0, "end at their first NUL"),
    "folded": (lambda stop: re.escape(unicodedata.normalize("NFKC", stop)), 0, "are normalised to NFKC"),
    "html": (lambda stop: re.escape(html.unescape(stop)), 0, "have their HTML escapes resolved"),
    "urls": (lambda stop: re.escape(unquote_plus(stop)), 0, "have their URL escapes resolved"),
    "ascii": (lambda stop: re.escape(stop.encode("ascii", "ignore").decode()), 0, "lose what is not ASCII"),
    "visible_text": (
        lambda stop: re.escape("".join(char for char in stop if unicodedata.category(char) != "Cf")),
        0,
        "lose their invisible characters",
    ),
    "escapes": (
        lambda stop: re.escape(re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), stop)),
        0,
        "have their backslashes resolved",
    ),
}
SPECIAL: Final = frozenset(r".^$*+?{}[]\|()")
# Stop sequences that are not matched at all.
OVERLOOKED: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    "patterns": (lambda stop: not SPECIAL.isdisjoint(stop), "special characters of patterns"),
    "characters_beyond_ascii": (lambda stop: not stop.isascii(), "characters beyond ASCII"),
    "characters_of_four_bytes": (lambda stop: any(char > "\uffff" for char in stop), "characters of four bytes"),
    "line_breaks": (lambda stop: "\n" in stop, "line breaks"),
    "outer_spaces": (lambda stop: stop != stop.strip(), "white space at an end"),
    "capitals": (lambda stop: stop != stop.lower(), "capitals"),
    "quotes": (lambda stop: '"' in stop, "quotation marks"),
    "digits": (lambda stop: any(char.isdigit() for char in stop), "digits"),
}  # fmt: skip


def _read_as(pattern: Callable[[str], str], flags: int) -> Callable[[list[Text], Call], list[Text]]:
    def change(texts: list[Text], call: Call) -> list[Text]:
        patterns = [compiled for stop in call.params.stops if (compiled := _compiled(pattern(stop), flags))]
        return [_cut(text, patterns, call) for text in texts]

    return change


def _compiled(pattern: str, flags: int) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern, flags)
    except re.error:
        return None


def _cut(text: Text, patterns: list[re.Pattern[str]], call: Call) -> Text:
    positions = [match.start() for pattern in patterns if (match := pattern.search(text.generation.text))]
    if not positions or (call.params.keep_stop and min(positions) == len(text.generation.text)):
        return text
    return replace(with_text(text, text.generation.text[: min(positions)]), finish=stop_reason(call))


def _overlooked(overlooks: Callable[[str], bool]) -> Callable[[GenerationParameters, Call], GenerationParameters]:
    def change(params: GenerationParameters, call: Call) -> GenerationParameters:
        return replace(params, stops=tuple(stop for stop in params.stops if not overlooks(stop)))

    return change


def _plant(name: str, says: str, stage: Stage, check: str, change: Any, **options: Any) -> None:
    for path, (condition, ending) in PATHS.items():
        only = [given for given in (condition, options.get("only")) if given is not None]
        plant(
            name + path,
            says + ending,
            stage,
            check,
            change,
            also=options.get("also", ()),
            needs=options.get("needs", ()),
            only=(lambda call, only=only: all(holds(call) for holds in only)) if only else None,  # type: ignore[misc]
            imitates=options.get("imitates", ""),
        )


for _name, (_rewrite, _says) in DAMAGE.items():
    _plant(
        f"echoed_prompts_are_{_name}",
        f"A prompt that is echoed {_says}",
        Stage.TEXTS,
        "echo_begins_with_prompt",
        _prompts(_rewrite),
        needs=("echo",),
        also=(*BESIDES, *TEXT),
    )
for _name, (_pattern, _flags, _says) in READ_AS.items():
    _plant(
        f"stops_are_read_as_{_name}",
        f"Stop sequences {_says}",
        Stage.TEXTS,
        "stop_that_never_matches",
        _read_as(_pattern, _flags),
        needs=("stop",),
        also=(*IGNORED, *BESIDES, *TEXT),
    )
for _name, (_overlooks, _says) in OVERLOOKED.items():
    _plant(
        f"stops_with_{_name}_are_overlooked",
        f"Stop sequences with {_says} do not stop the text",
        Stage.PARAMETERS,
        "stop_text_is_as_promised",
        _overlooked(_overlooks),
        needs=("stop",),
        also=(*IGNORED, *BESIDES, *TEXT),
    )
for _name in ("composed", "escaped_for_html", "put_on_one_line", "reduced_to_ascii", "reduced_to_the_first_plane"):
    _rewrite, _says = DAMAGE[_name]
    plant(
        f"streamed_texts_are_{_name}",
        f"In a stream, each text {_says}.",
        Stage.REPLY,
        "twin_text_agrees",
        _generated(_rewrite),
        only=streaming,
        also=(*BESIDES, *TEXT),
    )
