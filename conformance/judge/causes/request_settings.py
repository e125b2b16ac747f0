"""What a request has besides its prompt: the settings by which failing requests are distinguished from passing ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations
from typing import Final

from conformance.model import Contract, Credential
from conformance.model.exchange import Exchange
from conformance.model.json_text import json_equal
from conformance.model.request_view import RequestView

Settings = frozenset[str]
ENOUGH_FOR_TWO: Final = 3
_TESTS: Final[Mapping[str, tuple[str, Callable[[RequestView], bool]]]] = {
    "streamed": ("in streams", lambda request: request.stream),
    "plain": ("without streaming", lambda request: not request.stream),
    "usage": ("in streams with usage", lambda request: request.include_usage),
    "batch": ("with several prompts", lambda request: len(request.prompts) > 1),
    "ids": ("with token ids", lambda request: any(isinstance(prompt, tuple) for prompt in request.prompts)),
    "n": ("with `n` above 1", lambda request: request.n > 1),
    "best_of": ("with `best_of` above `n`", lambda request: request.best_of > request.n),
    "non-ascii": ("with text beyond ASCII", lambda request: not _ascii(request)),
    "zero": ("with `max_tokens` 0", lambda request: request.max_tokens == 0),
    "one": ("with `max_tokens` 1", lambda request: request.max_tokens == 1),
    "unlimited": ("without `max_tokens`", lambda request: request.body.get("max_tokens") is None),
    "sampled": ("above temperature 0", lambda request: not request.greedy),
}
"""Settings that are not the presence of one member, in words; the first that explains a failure is named."""
_TESTED: Final = frozenset({"stream", "stream_options", "prompt", "n", "best_of", "max_tokens", "temperature", "model"})
"""Members that these settings describe."""
_OTHER_FORM: Final = "other-form"
_WORDS: Final = {name: words for name, (words, _) in _TESTS.items()} | {_OTHER_FORM: "sent in another form"}


def _ascii(request: RequestView) -> bool:
    return all(isinstance(prompt, tuple) or prompt.isascii() for prompt in request.prompts)


def settings_of(x: Exchange, contract: Contract) -> Settings:
    """The settings of one request: those with a test of their own, and each further member that is not its default."""
    case = x.case
    if not isinstance(case.body, Mapping):
        return frozenset({_OTHER_FORM})
    view = RequestView(case.body, contract.defaults)
    names = {name for name, (_, test) in _TESTS.items() if test(view)}
    for name, value in case.body.items():
        if name not in _TESTED and value is not None and not json_equal(value, contract.defaults.get(name)):
            names.add(name)
    ordinary = case.credential is Credential.KEY and case.method == contract.method and not case.path
    return frozenset(names if ordinary else {*names, _OTHER_FORM})


def distinguishing(failing: Sequence[Settings], passing: Collection[Settings]) -> tuple[str, ...]:
    """The setting, or the two, that every failing request has and no passing one; none where nothing passes.

    A single request differs from others in many ways by chance: it must have one such setting only, and two settings
    are named from three different requests on.
    """
    if not failing or not passing:
        return ()
    common = sorted(frozenset.intersection(*failing), key=_rank)
    single = [name for name in common if not any(name in other for other in passing)]
    if single:
        return (single[0],) if len(failing) > 1 or len(single) == 1 else ()
    pairs = (pair for pair in combinations(common, 2) if not any(other.issuperset(pair) for other in passing))
    return next(pairs, ()) if len(failing) >= ENOUGH_FOR_TWO else ()


def _rank(name: str) -> tuple[int, str]:
    order = list(_WORDS)
    return (order.index(name) if name in order else len(order), name)


def words(names: Sequence[str]) -> str:
    """Settings in words: `in streams with several prompts`."""
    return " and ".join(_WORDS.get(name, f"with `{name}`") for name in names).replace(" and with ", " with ", 1)
