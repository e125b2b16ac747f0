"""What a request asks for, under its contract's defaults; total on any body, so that no check needs to guard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from conformance.model.json_text import MISSING, as_integer, is_number

Prompt: TypeAlias = str | tuple[int, ...]


@dataclass(frozen=True)
class RequestView:
    """A request body read with the contract's defaults: an absent or null member means its default."""

    body: Mapping[str, Any]
    defaults: Mapping[str, Any]

    def raw(self, name: str) -> Any:
        """The member as sent; MISSING where it is absent."""
        return self.body.get(name, MISSING)

    def get(self, name: str) -> Any:
        """The member as it counts: as sent, or the documented default where absent or null, or None."""
        value = self.body.get(name)
        return self.defaults.get(name) if value is None else value

    def integer(self, name: str, otherwise: int | None = None) -> int | None:
        value = as_integer(self.get(name))
        return otherwise if value is None else value

    def number(self, name: str, otherwise: float) -> float:
        value = self.get(name)
        if not is_number(value):
            return otherwise
        try:
            return float(value)
        except OverflowError:  # an integer of hundreds of digits
            return float("inf") if value > 0 else float("-inf")

    @property
    def stream(self) -> bool:
        return self.get("stream") is True

    @property
    def include_usage(self) -> bool:
        options = self.get("stream_options")
        return self.stream and isinstance(options, Mapping) and options.get("include_usage") is True

    @property
    def echo(self) -> bool:
        return self.get("echo") is True

    @property
    def n(self) -> int:
        return max(self.integer("n", 1) or 1, 1)

    @property
    def best_of(self) -> int:
        return max(self.integer("best_of", self.n) or self.n, self.n)

    @property
    def max_tokens(self) -> int | None:
        """The limit on generated tokens; None where neither request nor contract names one."""
        return self.integer("max_tokens")

    @property
    def logprobs(self) -> int | None:
        """How many alternatives are asked for; None where log probabilities are not asked for."""
        return self.integer("logprobs")

    @property
    def greedy(self) -> bool:
        """Whether temperature 0 asks for the likeliest token each time."""
        return self.number("temperature", 1.0) == 0

    @cached_property
    def stops(self) -> tuple[str, ...]:
        value = self.get("stop")
        values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        return tuple(item for item in values if isinstance(item, str) and item)

    @cached_property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompts one by one: strings, or tuples of token ids; empty where the body has none that can be read."""
        value = self.body.get("prompt")
        if isinstance(value, str):
            return (value,)
        if not isinstance(value, list) or not value:
            return ()
        if all(isinstance(item, str) for item in value):
            return tuple(value)
        if all(as_integer(item) is not None for item in value):
            return (tuple(int(item) for item in value),)
        if all(
            isinstance(item, list) and item and all(as_integer(token) is not None for token in item) for item in value
        ):
            return tuple(tuple(int(token) for token in item) for item in value)
        return ()

    @property
    def choices(self) -> int:
        """The number of choices that the reply must have: n for each prompt."""
        return self.n * max(len(self.prompts), 1)
