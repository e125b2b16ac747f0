"""What the target's replies have shown: which values it accepts and rejects, and what its model writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.contract.parameters import common_traits
from conformance.model import Credential, Membership
from conformance.model.budget import reported
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING, readable
from conformance.model.request_view import RequestView

_CONTEXT_LENGTH: Final = re.compile(r"(?:context|length|maximum|limit)\D{0,60}?(\d{3,8})", re.IGNORECASE)
_SAYS_NOTHING_OF_VALUES: Final = frozenset({401, 403, 408, 429})  # refusals for the key, the time or the rate
_WORD: Final = re.compile(r"[a-z][a-z_]*")
_READ_OF_A_REFUSAL: Final = 2048  # bytes in which a refusal names what it is about
FEW: Final = 4  # rejected values, up to which rejections count as exceptions


@dataclass
class LearnedTarget:
    """The first reply to each request, and what became of each value, by the label of its factor level.

    Values: `accepted`; `refused`: rejected alone, with the members that were sent; `in_doubt`: rejected in a joint
    case only, and not yet sent alone. Of those in doubt, `group_size` is the size of the smallest joint case that was
    rejected, `named_in_refusals` are the members that such refusals name, and `rejected_jointly` holds the members of
    a value, and the whole body, where only the base was beside it. `incompatible`: members that are accepted, but not
    together. `unsupported`: the number of values that were rejected, of parameters without an accepted one.

    `roles` are the parts in groups that successful exchanges have played. `longest_unlimited`: the most completion
    tokens of a text that no limit of the request ended.
    """

    replies: dict[bytes, Exchange] = field(default_factory=dict)
    refused: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    in_doubt: set[str] = field(default_factory=set)
    group_size: dict[str, int] = field(default_factory=dict)
    named_in_refusals: set[str] = field(default_factory=set)
    incompatible: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    unsupported: dict[str, int] = field(default_factory=dict)
    rejected_jointly: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    roles: set[Membership] = field(default_factory=set)
    longest_unlimited: float = 0.0
    rejects_temperature_zero: bool = False
    rows_sent: bool = False

    def learn(self, exchanges: Iterable[Exchange]) -> None:
        """Take in what came back for one phase."""
        controls: dict[str, Any] = {}
        probes: list[tuple[str, str, Exchange]] = []
        for exchange in exchanges:
            case = exchange.case
            if case.method == "POST" and case.credential is Credential.KEY and case.hang_up_after is None:
                self.replies.setdefault(case.content, exchange)
            if exchange.successful:
                self.roles.update(case.groups)
                self.longest_unlimited = max(self.longest_unlimited, _unlimited_tokens(exchange))
            for membership in case.groups:
                if membership.kind in {"accept", "observe"} and membership.role == "control":
                    controls[membership.key] = case.body
                elif membership.kind in {"accept", "observe"}:
                    probes.append((membership.key, membership.role, exchange))
        for key, role, exchange in probes:
            self._learn_of_value(key, role, exchange, controls.get(key))
        self.in_doubt -= self.accepted | self.refused.keys()
        self.unsupported = self._unsupported()

    def _learn_of_value(self, key: str, role: str, exchange: Exchange, control: Any) -> None:
        row, _, label = key.partition(" ")
        label = label or row
        status, body = exchange.status, exchange.case.body
        if exchange.successful:
            self.accepted.add(label)
            self._learn_of_combination(label, body)
        elif status is None or status < 400 or status in _SAYS_NOTHING_OF_VALUES or not isinstance(body, Mapping):
            return
        elif role == "joint":
            labels = {part.key.partition(" ")[2] for part in exchange.case.groups if part.role == "joint"}
            self.in_doubt.add(label)
            self.group_size[label] = min(len(labels), self.group_size.get(label, len(labels)))
            words = _WORD.findall(exchange.content[:_READ_OF_A_REFUSAL].decode("utf-8", "replace"))
            self.named_in_refusals |= set(words) & body.keys()
            if len(labels) == 1 and exchange.refused:
                members, _ = self.rejected_jointly.get(label, ({}, {}))
                self.rejected_jointly[label] = {**members, **_members(row, body, control)}, body
        else:
            members = _members(row, body, control)
            if members.keys() & self.named_in_refusals:
                # the refusal was right about its cause: the other values are probably accepted, all in one request
                self.group_size.update({other: 2 * size for other, size in self.group_size.items()})
            self.refused[label] = {**self.refused.get(label, {}), **members}

    def _learn_of_combination(self, label: str, body: Any) -> None:
        """A value was rejected beside the base only and is accepted without some of it: these cannot be combined."""
        members, rejected = self.rejected_jointly.pop(label, ({}, {}))
        missing = {name: value for name, value in rejected.items() if name not in members and body.get(name) != value}
        if missing:
            self.incompatible[label] = {**members, **missing}

    def _unsupported(self) -> dict[str, int]:
        patches = [patch for patch in self.refused.values() if len(patch) == 1 and None not in patch.values()]
        names = [next(iter(patch)) for patch in patches]
        labels = [label for label in self.accepted | self.in_doubt if not label.endswith("=null")]
        usable = {label.partition("=")[0] for label in labels}
        unsupported = [name for name in sorted({*names} - usable) if not common_traits(name).in_every_request]
        return {name: names.count(name) for name in unsupported}

    @property
    def rejections(self) -> int:
        """The number of values and combinations that are known to be rejected."""
        return len(self.refused) + len(self.incompatible)

    def rejects(self, body: Mapping[str, Any]) -> bool:
        """Whether a body holds a rejected value, or members that the target does not accept together."""
        return any(
            patch and all(body.get(name, MISSING) == value for name, value in patch.items())
            for patch in (*self.refused.values(), *self.incompatible.values())
        )

    def reply(self, content: bytes) -> Exchange | None:
        """The first reply to this request, where it was a success."""
        exchange = self.replies.get(content)
        return exchange if exchange is not None and exchange.successful else None

    def text(self, content: bytes, choice: int = 0) -> str:
        """The text that the model gave for this request; empty where there is none."""
        exchange = self.reply(content)
        if exchange is None or exchange.filtered or choice not in exchange.choices:
            return ""
        return exchange.choices[choice].text

    def context(self) -> int | None:
        """The context length that a refusal of an oversized request names; None where none does."""
        for exchange in self.replies.values():
            if exchange.refused and any(part.kind == "overflow" for part in exchange.case.groups):
                # escapes would put digits between the words
                raw = exchange.content.decode("utf-8", "replace")
                text = raw if exchange.json is MISSING else readable(exchange.json)
                lengths = _CONTEXT_LENGTH.findall(text[: 2 * _READ_OF_A_REFUSAL])
                if lengths:
                    return int(lengths[0])
        return None


def _unlimited_tokens(exchange: Exchange) -> float:
    """The completion tokens of each candidate for a reply; 0 where the request limits them, or they are unknown."""
    body = exchange.case.body
    if not isinstance(body, Mapping) or body.get("max_tokens") is not None:
        return 0
    usage, request = reported(exchange.usage), RequestView(body, {})
    return usage.completion / max(request.best_of * len(request.prompts), 1) if usage is not None else 0


def _members(row: str, body: Mapping[str, Any], control: Any) -> dict[str, Any]:
    """The member that a row on acceptance is about; for any other row those in which the probe differs."""
    area, _, name = row.partition(".")
    name = name.removesuffix(".accepts").removesuffix(".null")
    if area == "request" and name in body:
        return {name: body[name]}
    other = control if isinstance(control, Mapping) else body
    names = [name for name in {*body, *other} if body.get(name, MISSING) != other.get(name, MISSING)]
    return {name: body.get(name, MISSING) for name in names}


__all__ = ["FEW", "LearnedTarget"]
