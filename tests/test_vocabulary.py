"""Words that standard terms have replaced (docs/glossary.md) do not come back.

`python tests/test_vocabulary.py` lists every occurrence.
"""

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


@pytest.mark.parametrize("place", PLACES)
def test_every_place_has_files(place):
    assert list(ROOT.glob(place))


def test_no_retired_word_is_used():
    found = [line for path in files() for line in occurrences(path)]
    assert not found, "use the terms of docs/glossary.md:\n" + "\n".join(found)


def test_what_may_not_change_is_allowed_and_nothing_else():
    assert not RETIRED.search(KEPT.sub("", 'group="twin", id: relations.twin.text, twin_text_agrees'))
    assert RETIRED.search(KEPT.sub("", "the twin of a request"))


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for path in files() for line in occurrences(path))
