"""More habits of tokenizers that every contract leaves free."""

from __future__ import annotations

from conformance.selftest.legal_variant import option_variant

option_variant(
    "parts_of_characters_are_named", "A token that is part of a character is called bytes:\\xf0.", bytes_are_named=True
)
