"""Quotes from openapi.yaml: the written words at a JSON pointer that a derived requirement rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from conformance.contract.yaml_file import Written, written

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
    root: Written

    @classmethod
    def of(cls, text: str) -> WrittenDocument:
        """The document of a text that has been read as YAML without an error."""
        return cls(text, written(text))

    def quote(self, pointer: str, keyword: str) -> str:
        """What is written at a pointer for the keyword of a derived requirement; empty where nothing is.

        White space is folded, and a long list is cut after a whole word.
        """
        tokens = _tokens(pointer)
        if keyword == "required" and tokens[-2:-1] == ["properties"]:
            tokens = tokens[:-2]  # the object names its required members
        schema = self._at(tokens)
        member = None if schema is None else self._member(schema, _WRITTEN_AS.get(keyword, _TYPES))
        return "" if member is None else shortened(self.text[member.start : member.end])

    def _at(self, tokens: list[str]) -> Written | None:
        value: Written | None = self.root
        for token in tokens:
            if value is None:
                return None
            index = int(token) if token.isdigit() else len(value.items)
            value = value.members.get(token) or (value.items[index] if index < len(value.items) else None)
        return value

    def _member(self, schema: Written, keywords: tuple[str, ...]) -> Written | None:
        """The first of the keywords in a schema, else in the schemas inside it and in the one that it refers to."""
        members = schema.members
        for keyword in keywords:
            if keyword in members:
                return members[keyword]
        deeper = [branch for word in ("anyOf", "oneOf", "allOf") if word in members for branch in members[word].items]
        deeper += [members[word] for word in ("additionalProperties", "items") if word in members]
        if "$ref" in members and (referred := self._at(_tokens(members["$ref"].text))) is not None:
            deeper.append(referred)
        members_found = (self._member(inner, keywords) for inner in deeper)
        return next((member for member in members_found if member is not None), None)


def _tokens(pointer: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.removeprefix("#").split("/")[1:]]


def shortened(text: str) -> str:
    """A text with its white space folded, cut after a whole word where it is longer than a quote may be."""
    folded = " ".join(text.split())
    return folded if len(folded) <= LONGEST else folded[: folded.rindex(" ", 0, LONGEST + 1)]
