"""Words that standard terms have replaced (docs/glossary.md) do not come back, nor names that say nothing.

`python tests/test_vocabulary.py` lists every occurrence.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Whole words in comments, strings and names; `\b` keeps longer identifiers out, such as `twin_text_agrees`.
RETIRED = re.compile(
    r"\b(told|oddit(?:y|ies)|floods?|crowds?|crowded|purse|journey|in\s+peace|guilty|mend(?:s|ed|ing)?|so\s+many|by\s+luck"
    r"|comes?\s+on\s+top|nobody\s+asked|exhibits?|twins?|wish(?:es)?|kill\s+matrix|occasions?)\b",
    re.IGNORECASE,
)
# Inside recordings, hashes, published requirement ids and names of faults: they cannot change.
KEPT = re.compile(
    r"""["'`](?:twin|flood|crowded|crowd)["'`]"""  # kinds of groups, roles, conditions of faults
    r"|relations\.twin\.[a-z]+"  # requirement ids
    r"|said told knew"  # words that the reference's language model generates
)
# As the name of a variable or parameter, these tell a reader neither the type nor the role of what they hold.
MEANINGLESS = frozenset({
    "one", "found", "some", "more", "told", "said", "whose", "here", "each", "which", "how", "what", "was", "ours",
    "gone", "asked", "beside", "meant", "stuff", "thing", "things",
})  # fmt: skip
PLACES = (
    "conformance/**/*.py",
    "conformance/**/*.jinja2",
    "docs/**/*.md",
    "specs/**/*.yaml",
    "specs/*.md",
    "reports/*.md",
    "*.md",
)


def files() -> list[str]:
    """Every file that people read, but frozen sets, which are never edited."""
    paths = {path.relative_to(ROOT).as_posix() for place in PLACES for path in ROOT.glob(place)}
    return sorted(path for path in paths if "/frozen/" not in path)


def occurrences(path: str) -> Iterator[str]:
    """A line for each occurrence: place, word, text."""
    lines = (ROOT / path).read_text("utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        for match in RETIRED.finditer(KEPT.sub("", line)):
            yield f"{path}:{number}: {match[0]!r} in {line.strip()[:100]}"


def meaningless_names(source: str) -> Iterator[tuple[int, str]]:
    """The line and the name of each variable, loop variable or parameter that says nothing."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in MEANINGLESS:
            yield node.lineno, node.id
        elif isinstance(node, ast.arg) and node.arg in MEANINGLESS:
            yield node.lineno, node.arg


@pytest.mark.parametrize("place", PLACES)
def test_every_place_has_files(place):
    assert list(ROOT.glob(place))


def test_no_retired_word_is_used():
    lines = [line for path in files() for line in occurrences(path)]
    assert not lines, "use the terms of docs/glossary.md:\n" + "\n".join(lines)


def test_names_say_what_they_hold():
    modules = [path for path in files() if path.startswith("conformance/") and path.endswith(".py")]
    names = [
        f"{path}:{line}: {name}"
        for path in modules
        for line, name in meaningless_names((ROOT / path).read_text("utf-8"))
    ]
    assert not names, "name a variable after what it holds:\n" + "\n".join(names)


@pytest.mark.parametrize(
    "source",
    ["for one in verdicts: pass", "[one for one in verdicts]", "found = 1", "def f(told): pass", "lambda *said: 0"],
)
def test_a_name_that_says_nothing_is_reported(source):
    assert list(meaningless_names(source))


def test_attributes_and_strings_are_no_names():
    assert not list(meaningless_names("result.found = {'one': said.more}"))


def test_what_may_not_change_is_allowed_and_nothing_else():
    assert not RETIRED.search(KEPT.sub("", 'group="twin", id: relations.twin.text, twin_text_agrees'))
    assert RETIRED.search(KEPT.sub("", "the twin of a request"))


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for path in files() for line in occurrences(path))
