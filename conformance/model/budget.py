"""What a run may cost at most, and what it has cost so far. Requests that do not fit are not sent, with the reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.model.json_text import is_number
from conformance.model.request_view import RequestView

ANY_CONTEXT: Final = 4_000_000  # a limit beyond this says nothing about the length: it asks for the end of the context
BYTES_PER_TOKEN: Final = 3  # an estimate for prompts, used for planning
SPECIAL_TOKENS: Final = 4  # that a tokenizer may add to a prompt: one at the start, and three around a suffix
LARGE: Final = 100_000  # prompt tokens that a request may cost only if that was asked for (--allow-large)


@dataclass(frozen=True, slots=True)
class Budget:
    """Ceilings of a run; None is no ceiling. `requests` counts attempts, so retries are paid for too."""

    requests: int | None = None
    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    seconds: float | None = None


PROFILES: Final[Mapping[str, Budget]] = {"gate": Budget(120, 2_000, 6_000), "full": Budget(1_000, 25_000, 60_000)}
"""What a profile may cost where nothing else is said."""
CERTIFY: Final = "certify"
"""The profile of a run that is to be certified: the requests of `full`, under a plan that was fixed beforehand."""
ENOUGH: Final = Budget(2_000, 60_000, 150_000)
"""Its ceilings: what is left open cannot be certified, so retries and repeats have room."""


def usual(profile: str) -> Budget:
    """The ceilings of a profile, unless the user sets others."""
    return ENOUGH if profile == CERTIFY else PROFILES[profile]


def planned_as(profile: str) -> str:
    """The profile whose requests are sent."""
    return "full" if profile == CERTIFY else profile


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens that one exchange may take, or took."""

    prompt: int = 0
    completion: int = 0


def worst_case(request: RequestView) -> Cost:
    """The most that a request can cost by its own limits; without a token limit, its completion counts as nothing.

    The prompt is an estimate, see `ceiling`.
    """
    prompt = sum(
        size if isinstance(prompt, tuple) else size // BYTES_PER_TOKEN + 1
        for prompt, size in zip(request.prompts, map(_size, request.prompts), strict=True)
    )
    candidates = request.best_of * max(len(request.prompts), 1)
    limit = max(request.max_tokens or 0, 0)
    return Cost(prompt, limit * candidates if limit <= ANY_CONTEXT else 0)


def _size(prompt: str | tuple[int, ...]) -> int:
    """The number of ids, or of bytes."""
    return len(prompt) if isinstance(prompt, tuple) else len(prompt.encode("utf-8", "surrogatepass"))


def ceiling(request: RequestView) -> Cost:
    """The most that a request can cost with any tokenizer: a token is a byte or more of the prompt or the suffix."""
    suffix = request.get("suffix")
    extra = SPECIAL_TOKENS + (_size(suffix) if isinstance(suffix, str) else 0)
    # without a prompt, a model begins with one of its own
    return Cost(sum(_size(prompt) + extra for prompt in request.prompts or ("",)), worst_case(request).completion)


def is_large(request: RequestView) -> bool:
    """Whether the prompt is so large that it is sent only if it was asked for. No budget of prompt tokens counts it."""
    return ceiling(request).prompt > LARGE


def reported(usage: Mapping[str, Any] | None) -> Cost | None:
    """The token counts that the target reports; None where they are not whole numbers."""
    if usage is None:
        return None
    counts = [usage.get(name, 0) for name in ("prompt_tokens", "completion_tokens")]
    if not all(is_number(count) and 0 <= count < 2**53 for count in counts):
        return None
    return Cost(int(counts[0]), int(counts[1]))


@dataclass
class Account:
    """What was spent and what is promised to requests in flight; says why the next request may not go out."""

    budget: Budget
    clock: Callable[[], float] = time.monotonic
    attempts: int = 0
    spent: Cost = Cost()
    promised: Cost = Cost()
    started: float = field(init=False)

    def __post_init__(self) -> None:
        self.started = self.clock()

    @property
    def seconds_left(self) -> float | None:
        """Time until the run must end; None where it may take for ever."""
        if self.budget.seconds is None:
            return None
        return self.budget.seconds - (self.clock() - self.started)

    @property
    def attempts_left(self) -> int | None:
        """How many requests may still go out; None where there is no limit."""
        return None if self.budget.requests is None else max(0, self.budget.requests - self.attempts)

    def refuses(self, cost: Cost = Cost(), *, in_flight: bool = True) -> str:
        """Why a request of this cost does not fit, or the empty string; `in_flight` counts what is set aside too."""
        set_aside = self.promised if in_flight else Cost()
        left = self.seconds_left
        if left is not None and left <= 0:
            return f"the run took its {self.budget.seconds:g} s (--max-seconds)"
        completion, prompt = self.spent.completion + set_aside.completion, self.spent.prompt + set_aside.prompt
        for name, option, used, needed, limit in (
            ("attempts", "--max-requests", self.attempts, 1, self.budget.requests),
            ("completion tokens", "--max-tokens", completion, cost.completion, self.budget.completion_tokens),
            ("prompt tokens", "--max-prompt-tokens", prompt, cost.prompt, self.budget.prompt_tokens),
        ):
            if limit is not None and used + needed > limit:
                return (
                    f"the budget of {limit} {name} is spent ({option}); {used} are used and the next may take {needed}"
                )
        return ""

    def promise(self, cost: Cost) -> None:
        """Count a first attempt, and set its cost aside, before it is sent."""
        self.attempts += 1
        self.promised = Cost(self.promised.prompt + cost.prompt, self.promised.completion + cost.completion)

    def settle(self, promised: Cost, took: Cost) -> None:
        """Replace the cost that was set aside by the actual cost."""
        self.promised = Cost(self.promised.prompt - promised.prompt, self.promised.completion - promised.completion)
        self.spent = Cost(self.spent.prompt + took.prompt, self.spent.completion + took.completion)
