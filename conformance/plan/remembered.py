"""What was planned before, used again where nothing differs that it rested on.

Before each wave, all that is still to come is planned anew. Most of it looks at little of what is known by then: a part
of a plan that would see what it saw before makes what it made before. The same goes for other plans of one scene.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import FunctionType, MethodType
from typing import Any, Final, cast

from conformance.model.exchange import Exchange
from conformance.plan.case_group import CaseGroup
from conformance.plan.context import PlanContext
from conformance.plan.learned_target import LearnedTarget
from conformance.plan.set_cover import RemainingBudget

Look = tuple[Any, ...]
Part = Callable[..., Iterable[CaseGroup]]
KEPT: Final = 4  # of each part, as many of the first that were made and of the last


class Seen:
    """What is known, and a note of each look at it with what was seen.

    What a method of `LearnedTarget` looks at is noted like any other look, but for those below.
    """

    def __init__(self, known: LearnedTarget) -> None:
        self.known, self.looks = known, dict[Look, Any]()

    def __getattr__(self, name: str) -> Any:
        told = getattr(LearnedTarget, name, None)
        if isinstance(told, FunctionType):
            return MethodType(told, self)
        value = getattr(self.known, name)
        if name == "replies":
            value = Replies(self)
        else:
            self.look("attribute", name)
        setattr(self, name, value)  # found there from now on
        return value

    def text(self, content: bytes, choice: int = 0) -> str:
        return str(self.look("text", content, choice))

    def context(self) -> int | None:
        found: int | None = self.look("context")
        return found

    def look(self, *at: Any) -> Any:
        found = self.looks[at] = look(self.known, at)
        return found


@dataclass
class Replies:
    """The replies by request content, and a note of each look at them."""

    seen: Seen

    def get(self, content: bytes) -> Exchange | None:
        found: Exchange | None = self.seen.look("reply", content)
        return found

    def __contains__(self, content: bytes) -> bool:
        return self.get(content) is not None

    def values(self) -> list[Exchange]:
        return list(self.seen.look("replies"))


def look(known: LearnedTarget, at: Look) -> Any:
    """What is seen there, in a form that stays as it is."""
    match at:
        case ("text", content, choice):
            return known.text(content, choice)
        case ("context",):
            return known.context()
        case ("reply", content):
            return known.replies.get(content)
        case ("replies",):
            return tuple(known.replies.values())
        case (_, name):
            value = getattr(known, name)
            if isinstance(value, set):
                return frozenset(value)
            return dict(value) if isinstance(value, Mapping) else value
    raise ValueError(at)


@dataclass
class Remembered:
    """Parts of plans and choices among them; all of one scene, with the same bodies drawn."""

    _made: dict[Part, list[tuple[dict[Look, Any], tuple[CaseGroup, ...]]]] = field(default_factory=dict, repr=False)
    _chosen: dict[tuple[Any, ...], tuple[tuple[CaseGroup, ...], list[CaseGroup], dict[str, Any]]] = field(
        default_factory=dict, repr=False
    )

    def of(self, part: Part, context: PlanContext, *more: Any) -> tuple[CaseGroup, ...]:
        """The bundles of a part, as it makes them of this scene."""
        before = self._made.setdefault(part, [])
        for looks, made in before:
            if all(look(context.known, at) == value for at, value in looks.items()):
                return made
        seen = Seen(context.known)
        made = tuple(part(replace(context, known=cast(LearnedTarget, seen)), *more))
        before.append((seen.looks, made))
        del before[KEPT:-KEPT]
        return made

    def choice(
        self,
        made: Callable[[], list[CaseGroup]],
        ahead: Iterable[CaseGroup],
        remaining: RemainingBudget,
        shown: Iterable[str],
    ) -> list[CaseGroup]:
        """The bundles to send: of these, with this purse, after this was shown."""
        bundles = tuple(ahead)
        key = (tuple(map(id, bundles)), repr(remaining), frozenset(shown))
        found = self._chosen.get(key)
        if found is None:
            chosen = made()
            found = self._chosen[key] = bundles, chosen, dict(vars(remaining))
            for old in list(self._chosen)[KEPT * KEPT : -KEPT * KEPT]:
                del self._chosen[old]
        vars(remaining).update(found[2])
        return list(found[1])


__all__ = ["Remembered", "Seen"]
