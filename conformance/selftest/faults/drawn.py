"""Defects that show only for inputs that nobody would think of: certain scripts, and members beside one another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from conformance.contract.validity import validity
from conformance.model import Contract, Validity
from conformance.model.json_text import dumps
from conformance.reference.alterations import Call, Stage
from conformance.reference.messages import Problem, Refusal
from conformance.selftest.edits import sent
from conformance.selftest.fault import fault

TEXTS: Final = ("prompt", "suffix", "user", "stop")
BESIDE: Final = ("user", "seed", "stop", "logit_bias", "presence_penalty", "frequency_penalty", "top_p")
# Alphabets that hand-written examples seldom have: from Greek to Thaana but for Hebrew, from Devanagari to Mongolian.
ALPHABETS: Final = (range(0x370, 0x590), range(0x600, 0x7C0), range(0x900, 0x1800), range(0xAC00, 0xD7A4))


def _rare(body: Any) -> bool:
    texts = [body.get(name) for name in TEXTS] if isinstance(body, Mapping) else []
    flat = "".join(dumps(text).encode().decode("unicode_escape", "ignore") for text in texts)
    return any(ord(character) in alphabet for character in flat for alphabet in ALPHABETS)


@fault(Stage.REFUSAL, "drawn_is_accepted", also=("limits", "relations"))
def rare_alphabets_are_refused(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Text in an alphabet such as Arabic, Thai or Hangul is refused as malformed."""
    problem = Problem("the request body is malformed", None)
    return refusal or (Refusal(400, (problem,)) if _rare(call.body) else None)


@fault(Stage.REFUSAL, "drawn_is_accepted", also=("limits", "relations", "robustness", "errors"))
def rare_alphabets_are_500(refusal: Refusal | None, call: Call) -> Refusal | None:
    """Text in an alphabet such as Arabic, Thai or Hangul is answered by 500."""
    return refusal or (Refusal(500, (Problem("internal error", None),)) if _rare(call.body) else None)


def _shows(contract: Contract, name: str = "") -> bool:
    return any(row.check == "drawn_is_refused" and row.level == "MUST" for row in contract.requirements)


@fault(Stage.BODY, "drawn_is_refused", parameters=BESIDE, fits=_shows, also=("limits",))
def validation_ends(body: Any, call: Call, name: str) -> Any:
    """A request with `{name}` is not validated any further: members with invalid values are ignored."""
    if not isinstance(body, dict) or sent(call, name) is None:
        return body
    contract = call.reference.contract
    required = {key: body[key] for key in ("model", "prompt", "max_tokens", "stream") if key in body}
    if validity(contract, required) is Validity.INVALID:
        return body
    return {
        key: value
        for key, value in body.items()
        if key in {name, *required} or validity(contract, {**required, key: value}) is not Validity.INVALID
    }


@fault(Stage.BODY, "drawn_is_refused", fits=_shows, also=("limits",))
def rare_alphabets_are_not_validated(body: Any, call: Call) -> Any:
    """Beside text in an alphabet such as Arabic, Thai or Hangul, members with invalid values are ignored."""
    return validation_ends(body, call, "prompt") if _rare(body) else body
