"""Tolerant matching of prompts, texts and tokens: lenient with tokenizers, strict with lost text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.judge.token_text import (
    covers,
    echoed_length,
    ends_inside_a_token,
    is_lossy_copy,
    is_plain,
    possible_lengths,
    repeated_piece,
    repeats_itself,
    same_but_for_a_space,
    spells,
)

CAT = "\U0001f431"


@pytest.mark.parametrize(
    ("text", "prompt", "length"),
    [
        ("1, 2, 3", "1, 2,", 5),
        ("<s>1, 2, 3", "1, 2,", 8),
        ("<s> 1, 2, 3", "1, 2,", 9),
        ("<|begin_of_text|>1, 2, 3", "1, 2,", 22),
        ("<｜begin▁of▁sentence｜>1, 2", "1,", 23),
        (" 1, 2, 3", "1, 2,", 6),
        ("1, 2, 3", " 1, 2,", 5),
        ("é!", "e\u0301", 1),
        ("fine", "ﬁ", 2),
        ("a\nb c", "a\r\nb", 3),
        ("anything", "", 0),
        (" 3, 4", "1, 2,", None),
        ("2, 3", "1, 2,", None),
        ("", "1, 2,", None),
        ("x", "  ", None),
    ],
)
def test_a_prompt_is_found_at_the_start_of_a_text_however_it_was_normalised(text, prompt, length):
    assert echoed_length(text, prompt) == length


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        ([" 4", ",", " 5"], " 4, 5"),
        ([" 4", ","], "4,"),
        (["<s>", "1", ","], "1,"),
        (["bytes:\\xf0\\x9f", "bytes:\\x90\\xb1"], CAT),
        ([" bytes:\\xf0\\x9f", "bytes:\\x90\\xb1"], " " + CAT),
        (["<0xF0>", "<0x9F>", "<0x90>", "<0xB1>", "!"], CAT + "!"),
        (["\ufffd", "\ufffd", "!"], CAT + "!"),
        (["", "", "", CAT], CAT),
        (["a", "\ufffd"], "a"),
        (["a", "bytes:\\xf0"], "a\ufffd"),
        (["a", "bytes:\\xf0"], "a"),
        (["the ", "<0x41>"], "the <0x41>"),
        (["\u2581four", ",", "\u2581five"], " four, five"),
        (["\u0120four", "\u010a", "\u00c3\u00a9"], " four\n\u00e9"),
    ],
)
def test_tokens_make_up_a_text_in_every_spelling_of_partial_characters(tokens, text):
    assert spells(tokens, text)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["4", ",", "5"], " 4, 5"),
        ([" 4", ","], " 4, 5"),
        (["\n\n", "\n\n has"], "\n\n has"),
        (["\ufffd", "b"], "ab"),
        (["\ufffd"], CAT * 2),
        (["a", "\ufffd", "c"], "abc"),
    ],
)
def test_tokens_that_lost_text_or_doubled_it_do_not(tokens, text):
    assert not spells(tokens, text)


def test_tokens_may_continue_after_the_text_only_with_more():
    assert spells([" 4", " STOP"], " 4", prefix=True)
    assert spells(["\ufffd", "\ufffd", " STOP"], CAT, prefix=True)
    assert not spells([" 4", " STOP"], " 4")
    assert not spells([" 4"], " 4 STOP", prefix=True)


def test_an_incomplete_character_may_be_an_empty_token():
    assert spells(["z", "", "", "\n"], "z\ufffd\ufffd\n")
    assert not spells(["z", "", "\n"], "z\ufffd\ufffd\n"), "one token is needed for each U+FFFD"
    assert not spells(["z", "", "\n"], "z4\n")


def test_a_replacement_character_stands_for_characters_beyond_ascii_only():
    assert covers("a \ufffd\ufffd b", f"a {CAT} b")
    assert covers("\ufffd" * 4, "猫" + CAT)
    assert not covers("a \ufffd b", "a x b")
    assert not covers("a \ufffd b", "a 猫猫 b")


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.lists(st.text(max_size=4), max_size=6))
def test_any_tokens_make_up_their_own_join(tokens):
    assert spells(tokens, "".join(tokens))


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(st.text(max_size=12))
def test_bytes_one_by_one_make_up_their_text(text):
    assert spells([f"bytes:\\x{byte:02x}" for byte in text.encode()], text)
    assert spells([f"<0x{byte:02X}>" for byte in text.encode()], text)


@pytest.mark.parametrize(
    ("text", "count", "piece"),
    [
        (" is is is", 3, " is"),
        ("is is is", 3, " is"),
        ("aaaa", 4, "a"),
        ("aaaa", 2, "aa"),
        ("abab", 4, None),
        (" is was is", 3, None),
        (" is", 1, None),
        (" is is", None, " is"),
    ],
)
def test_a_repeated_piece_is_found_in_as_many_parts_as_there_were_tokens(text, count, piece):
    assert repeated_piece(text, count) == piece


def test_a_plain_token_can_only_stand_for_itself():
    assert is_plain(" 4")
    assert not any(map(is_plain, ["", "é", "<s>", "bytes:\\xf0", "<0x0A>", "\ufffd"]))


def test_a_text_with_lost_characters_is_distinguished_from_another_draw():
    assert is_lossy_copy("a  b", f"a {CAT} b", sure=True)
    assert not is_lossy_copy("a ", f"a {CAT}", sure=True), "a shorter draw looks the same"
    assert not is_lossy_copy("a b", "a x b", sure=True)
    assert is_lossy_copy(" 4, 6", " 4, 5, 6", sure=False)
    assert not is_lossy_copy(" 4, 7", " 4, 5, 6", sure=False)
    assert not is_lossy_copy(" 4, 5, 6", " 4, 5, 6", sure=False)


def test_the_rest_of_a_token_is_short_and_has_no_space():
    assert ends_inside_a_token("")
    assert ends_inside_a_token("s")
    assert not ends_inside_a_token(" and")
    assert not ends_inside_a_token("x" * 13)


def test_a_text_has_a_length_in_each_unit_and_normalisation_form():
    assert possible_lengths("abc") == {3}
    assert possible_lengths("é🌲") == {2, 3, 4, 6, 7}, "characters, UTF-16 units and bytes, composed and decomposed"


def test_a_text_that_repeats_itself_is_distinguished_from_prose():
    assert repeats_itself(" the of the of the")
    assert repeats_itself("aaaa")
    assert not repeats_itself(" one two three")
    assert not repeats_itself("")
    assert not repeats_itself("a")


def test_texts_that_differ_by_a_space_at_the_start_are_the_same():
    assert same_but_for_a_space(" a b", "a b")
    assert same_but_for_a_space("a", "a")
    assert not same_but_for_a_space(" a b", " ab")
    assert not same_but_for_a_space("  a", "a")
