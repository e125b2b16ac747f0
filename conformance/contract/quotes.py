"""Quotes from openapi.yaml: the written words at a JSON pointer that a derived requirement rests on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from conformance.contract.yaml_file import compose_yaml

LONGEST: Final = 200  # characters: the words that bind, not a copy of the document
_TYPES: Final = ("type", "anyOf", "oneOf", "allOf", "enum", "properties")
_WRITTEN_AS: Final[Mapping[str, tuple[str, ...]]] = {
    # the keyword of a derived requirement → the keywords of openapi.yaml that can say so
    "null": ("nullable", *_TYPES),
    "enum": ("enum",),
    "const": ("const", "enum"),
    "default": ("default",),
    "minimum": ("minimum", "exclusiveMinimum", "format"),
    "maximum": ("maximum", "exclusiveMaximum", "format"),
    "min-items": ("minItems",),
    "minItems": ("minItems",),
    "max-items": ("maxItems",),
    "maxItems": ("maxItems",),
    "pattern": ("pattern",),
    "required": ("required",),
}


@dataclass(frozen=True)
class WrittenDocument:
    """The text of openapi.yaml with the positions of its values."""

    text: str
    root: yaml.Node

    @classmethod
    def of(cls, text: str) -> WrittenDocument:
        """The document of a text that has been read as YAML without an error."""
        return cls(text, compose_yaml(text))

    def quote(self, pointer: str, keyword: str) -> str:
        """What is written at a pointer for the keyword of a derived requirement; empty where nothing is.

        White space is folded, and a long list is cut after a whole word.
        """
        tokens = [token.replace("~1", "/").replace("~0", "~") for token in pointer.removeprefix("#").split("/")[1:]]
        if keyword == "required" and tokens[-2:-1] == ["properties"]:
            tokens = tokens[:-2]  # the object names its required members
        node = self._at(tokens)
        pair = None if node is None else self._pair(node, _WRITTEN_AS.get(keyword, _TYPES))
        if pair is None:
            return ""
        return shortened(self.text[pair[0].start_mark.index : pair[1].end_mark.index])

    def _at(self, tokens: list[str]) -> yaml.Node | None:
        node: yaml.Node | None = self.root
        for token in tokens:
            node = _child(node, token)
        return node

    def _pair(self, node: yaml.Node, keywords: tuple[str, ...]) -> tuple[yaml.Node, yaml.Node] | None:
        """The first of the keywords in a schema, else in the schemas inside it and in the one that it refers to."""
        members = dict(_members(node))
        for keyword in keywords:
            if keyword in members:
                return members[keyword]
        unions = (members[word][1] for word in ("anyOf", "oneOf", "allOf") if word in members)
        deeper = [branch for union in unions for branch in union.value]
        deeper += [members[keyword][1] for keyword in ("additionalProperties", "items") if keyword in members]
        if "$ref" in members:
            referred = self._at(str(members["$ref"][1].value).removeprefix("#").split("/")[1:])
            deeper += [] if referred is None else [referred]
        return next((pair for child in deeper if (pair := self._pair(child, keywords)) is not None), None)


def shortened(text: str) -> str:
    """A text with its white space folded, cut after a whole word where it is longer than a quote may be."""
    folded = " ".join(text.split())
    return folded if len(folded) <= LONGEST else folded[: folded.rindex(" ", 0, LONGEST + 1)]


def _members(node: yaml.Node) -> Iterator[tuple[str, tuple[yaml.Node, yaml.Node]]]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield str(key.value), (key, value)


def _child(node: yaml.Node | None, token: str) -> Any:
    if isinstance(node, yaml.SequenceNode):
        return node.value[int(token)] if token.isdigit() and int(token) < len(node.value) else None
    pair = None if node is None else dict(_members(node)).get(token)
    return None if pair is None else pair[1]
