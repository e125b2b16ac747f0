"""Write conformance/plan/priors.yaml: how often a check would have detected a public defect, and in which context.

CONFORMANCE_CORPUS=../corpus python bench/priors.py      (or: python bench/priors.py ../corpus/defects.yaml)

Each public defect names a request that shows it. selftest/corpus_map.yaml says which check detects it; its contexts
are those of the request, named as the planner names them.
"""

from __future__ import annotations

import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import yaml

from conformance.contract import load, providers
from conformance.judge.catalogue import load as checks

PACKAGE: Final = Path(__file__).parents[1] / "conformance"
TARGET: Final = PACKAGE / "plan" / "priors.yaml"
MAP: Final = PACKAGE / "selftest" / "corpus_map.yaml"
HEAD: Final = """\
# Public defects of completions servers: which check detects them, and in which contexts of a request they show.
# `python bench/priors.py` made this file; `sources` are repository#number of the reports, as often as they count.
# `conversions`: look-alikes that a common parser converts, with the page that says so.
"""
# Contexts that the text of a request shows, besides the parameters that it names.
FORMS: Final[Mapping[str, str]] = {
    "streamed": r'"stream": ?true',
    "with usage": r'"include_usage"',
    "batch": r'"prompt": ?\["|"prompt": ?\[P|two prompts',
    "token ids": r'"prompt": ?\[+\d',
    "nothing generated": r'"max_tokens": ?0',
    "not ASCII": r"[^\x00-\x7f]",
    "sampled": r'"temperature": ?[1-9]',
    "at the same time": r"parallel|concurrent",
}
# Look-alikes that a common parser converts without a word, by their name in the input model.
PYDANTIC: Final = "https://docs.pydantic.dev/latest/concepts/conversion_table/"
CONVERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "a number in quotes": (PYDANTIC,),
    "a number in quotes with spaces": (PYDANTIC,),
    "true for a number": (PYDANTIC,),
    "1 for true": (PYDANTIC,),
    "0 for false": (PYDANTIC,),
    "true in quotes": (PYDANTIC,),
    "false in quotes": (PYDANTIC,),
    "yes for true": (PYDANTIC,),
    "1 in quotes": (PYDANTIC,),
}
ORDINARY: Final = frozenset({"model", "prompt", "max_tokens", "temperature", "stream", "stream_options"})


def main() -> None:
    folder = os.environ.get("CONFORMANCE_CORPUS", "")
    corpus = Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "defects.yaml"
    content = corpus.read_bytes()
    known = yaml.safe_load(MAP.read_text("utf-8"))
    parameters = {name for provider in providers() for name in load(provider).parameters} - ORDINARY
    sources: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for defect in yaml.safe_load(content):
        check = known.get(defect["id"], {}).get("check")
        if check:
            for context in ("any", *contexts(str(defect["detect"]["request"]), parameters)):
                sources[check][context].append(f"{defect['repo']}#{defect['number']}")
    TARGET.write_text(HEAD + rendered(corpus.name, content, sources), encoding="utf-8")


def contexts(request: str, parameters: set[str]) -> Iterator[str]:
    """The contexts of a request that a report describes in words and JSON."""
    found = [name for name, pattern in FORMS.items() if re.search(pattern, request, re.IGNORECASE)]
    yield from found
    if "streamed" not in found:
        yield "plain"
    yield from sorted(name for name in parameters if re.search(rf'"{name}":', request))


def rendered(name: str, content: bytes, sources: Mapping[str, Mapping[str, list[str]]]) -> str:
    found = {
        check: {
            "area": checks()[check].area,
            "contexts": {
                context: {"defects": len(reports), "sources": dict(sorted(Counter(reports).items()))}
                for context, reports in sorted(sources[check].items(), key=lambda item: (-len(item[1]), item[0]))
            },
        }
        for check in sorted(sources)
    }
    conversions = {name: list(sources) for name, sources in CONVERSIONS.items()}
    data = {"read": name, "sha256": sha256(content).hexdigest(), "checks": found, "conversions": conversions}
    return str(yaml.safe_dump(data, sort_keys=False, width=120, default_flow_style=None, allow_unicode=True))


if __name__ == "__main__":
    main()
