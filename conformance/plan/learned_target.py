"""What the target's own replies have taught: which values it refuses, and what its model says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from conformance.contract.parameters import common_traits
from conformance.model import Credential
from conformance.model.exchange import Exchange
from conformance.model.json_text import MISSING

_CONTEXT: Final = re.compile(r"(?:context|length|maximum|limit)\D{0,60}?(\d{3,8})", re.IGNORECASE)
_NO_VERDICT: Final = frozenset({401, 403, 408, 429})
_WORD: Final = re.compile(r"[a-z][a-z_]*")
FEW: Final = 4


@dataclass
class LearnedTarget:
    """Replies by request content, and values by what became of them, each with the label that its level has.

    `refused` maps a label to the members that were turned down alone. What was refused in company is `suspect` until
    it was sent alone; `company` holds the size of the smallest one it was refused in, `named` the members that such
    refusals spoke of. `apart` are members that are taken, but not together, `gone` counts the
    values of parameters of which none is. `no_cold`: the target refuses temperature
    0. `swept`: rows were sent.
    """

    replies: dict[bytes, Exchange] = field(default_factory=dict)
    refused: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    suspect: set[str] = field(default_factory=set)
    company: dict[str, int] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    apart: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    gone: dict[str, int] = field(default_factory=dict)
    joined: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=dict)
    accepted: set[str] = field(default_factory=set)
    no_cold: bool = False
    swept: bool = False

    def learn(self, exchanges: Iterable[Exchange]) -> None:
        """Take in what came back."""
        controls: dict[str, Any] = {}
        probes: list[tuple[str, str, Exchange]] = []
        for x in exchanges:
            if x.case.method == "POST" and x.case.credential is Credential.KEY and x.case.hang_up_after is None:
                self.replies.setdefault(x.case.content, x)
            for one in x.case.groups:
                if one.kind in {"accept", "observe"} and one.role == "control":
                    controls[one.key] = x.case.body
                elif one.kind in {"accept", "observe"}:
                    probes.append((one.key, one.role, x))
        for key, role, x in probes:
            self._weigh(key, role, x, controls.get(key))
        self.suspect -= self.accepted | self.refused.keys()
        self.gone = self._gone()

    def _weigh(self, key: str, role: str, x: Exchange, control: Any) -> None:
        row, _, label = key.partition(" ")
        label = label or row
        if x.successful:
            self.accepted.add(label)
            self._part(label, x.case.body)
        elif x.status is None or x.status < 400 or x.status in _NO_VERDICT or not isinstance(x.case.body, Mapping):
            return
        elif role == "joint":
            labels = {one.key.partition(" ")[2] for one in x.case.groups if one.role == "joint"}
            self.suspect.add(label)
            self.company[label] = min(len(labels), self.company.get(label, len(labels)))
            self.named |= set(_WORD.findall(x.content[:2048].decode("utf-8", "replace"))) & x.case.body.keys()
            if len(labels) == 1 and x.refused:
                members, _ = self.joined.get(label, ({}, {}))
                self.joined[label] = {**members, **_members(row, x.case.body, control)}, x.case.body
        else:
            if _members(row, x.case.body, control).keys() & self.named:
                # whose fault it was said to be, it was: the others are likely to be taken, all in one company
                self.company.update({one: 2 * size for one, size in self.company.items()})
            self.refused[label] = {**self.refused.get(label, {}), **_members(row, x.case.body, control)}

    def _part(self, label: str, body: Any) -> None:
        """A value that was refused with nothing but the base beside it is taken without: only these may not meet."""
        members, refused = self.joined.pop(label, ({}, {}))
        gone = {name: value for name, value in refused.items() if name not in members and body.get(name) != value}
        if gone:
            self.apart[label] = {**members, **gone}

    def _gone(self) -> dict[str, int]:
        """How many values of a parameter were refused, each alone, where none was taken and none is in doubt."""
        told = [next(iter(patch)) for patch in self.refused.values() if len(patch) == 1 and None not in patch.values()]
        rest = self.accepted | self.suspect
        open_still = {label.partition("=")[0] for label in rest if not label.endswith("=null")}
        names = [name for name in sorted({*told} - open_still) if not common_traits(name).in_every_request]
        return {name: told.count(name) for name in names}

    @property
    def rejections(self) -> int:
        """The number of values and combinations that are known to be rejected."""
        return len(self.refused) + len(self.apart)

    def spoils(self, body: Mapping[str, Any]) -> bool:
        """Whether a body holds what the target has turned down alone, or members that it does not take together."""
        return any(
            patch and all(body.get(name, MISSING) == value for name, value in patch.items())
            for patch in (*self.refused.values(), *self.apart.values())
        )

    def reply(self, content: bytes) -> Exchange | None:
        """The first reply to this request, where it was a success."""
        found = self.replies.get(content)
        return found if found is not None and found.successful else None

    def text(self, content: bytes, choice: int = 0) -> str:
        """The text that the model gave for this request; empty where there is none."""
        found = self.reply(content)
        if found is None or found.filtered or choice not in found.choices:
            return ""
        return found.choices[choice].text

    def context(self) -> int | None:
        """The context length that some refusal speaks of, where one does."""
        for x in self.replies.values():
            if x.refused and any(one.kind == "overflow" for one in x.case.groups):
                told = _CONTEXT.findall(x.content[:4096].decode("utf-8", "replace"))
                if told:
                    return int(told[0])
        return None


def _members(row: str, body: Mapping[str, Any], control: Any) -> dict[str, Any]:
    """The members that a row on acceptance speaks of; for any other row those in which the probe differs."""
    area, _, name = row.partition(".")
    name = name.removesuffix(".accepts").removesuffix(".null")
    if area == "request" and name in body:
        return {name: body[name]}
    known = control if isinstance(control, Mapping) else body
    return {one: body.get(one, MISSING) for one in {*body, *known} if body.get(one, MISSING) != known.get(one, MISSING)}


__all__ = ["FEW", "LearnedTarget"]
