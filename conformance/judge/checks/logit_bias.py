"""Logit bias, told without a tokenizer: a forced token repeats itself, whatever it is, and a banned one is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.logprobs import token_strings
from conformance.judge.checks.stop import generated_text
from conformance.judge.comparison import attribute_to, counted, members, not_comparable
from conformance.judge.fixtures import choice, completion, example, logprobs, plain, usage
from conformance.judge.token_text import repeated_piece
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange, Group

FORCE, BAN = 100, -100


@dataclass(frozen=True)
class Said:
    """What a biased choice consists of: its tokens where they are known, and the one piece it repeats, if it does."""

    text: str
    tokens: tuple[str, ...]
    count: int | None
    reasoned: bool = False  # part of what was generated is not shown

    @property
    def piece(self) -> str | None:
        """The token that is all there is; None where there are several, or only one place to look at."""
        if len(self.tokens) > 1:
            # The first token of a text may be shown without its leading space.
            same = {token.removeprefix(" ") for token in self.tokens}
            return self.tokens[-1] if len(same) == 1 else None
        found = repeated_piece(self.text, self.count) if self.text else None
        if found is None and self.count is None:
            found = repeated_piece(self.text)
        return found

    @property
    def tells(self) -> bool:
        """Whether there is more than one place to look at, in characters that are whole."""
        places = len(self.tokens) if self.tokens else self.count if self.count is not None else len(self.text)
        whole = places > 1 and bool(self.text) and "\ufffd" not in self.text
        return whole and not (self.reasoned and self.piece is None)


def said(x: Exchange, found: Choice, context: CheckContext) -> Said:
    """What a choice consists of."""
    request = context.request(x)
    told = request.choices == 1 and request.best_of == 1 and not found.reasoned
    count = counted(x, "completion_tokens") if told else None
    tokens = token_strings(found.logprobs or {}) if not request.echo else None
    return Said(generated_text(request, found) or "", tuple(tokens or ()), count, found.reasoned)


def biased(x: Exchange, value: float) -> set[str]:
    """The token ids that the request gives this bias, or a stronger one of the same sign."""
    body = x.case.body
    bias = body.get("logit_bias") if isinstance(body, Mapping) else None
    if not isinstance(bias, Mapping):
        return set()
    numbers = {token: one for token, one in bias.items() if isinstance(one, (int, float)) and not isinstance(one, bool)}
    return {token for token, one in numbers.items() if (one >= value if value > 0 else one <= value)}


def _forced(text: str, tokens: list[str] | None = None) -> Exchange:
    lists = logprobs(tokens) if tokens else None
    return plain(
        completion(choice(text, logprobs=lists), usage=usage(4, 4)), {"temperature": 0, "logit_bias": {"11": 100}}
    )


@check(
    "effects",
    Scope.GROUP,
    group="force",
    good=lambda: example(_force(_forced(" is is is is"))) + example(_force(_forced("aaaa", ["a"] * 4))),
    bad=lambda: example(_force(_forced(" 4, 5"))) + example(_force(_forced("abab", ["a", "b"] * 2))),
)
def bias_forces(group: Group, context: CheckContext) -> Findings:
    """A token with a bias of 100 is the only one that comes.

    Classifiers limit answers to a few tokens this way; a bias without effect lets any text through.

    Fix: add the bias to the logits before sampling, for each token and each choice, and read ids given as strings.
    """
    problem = not_comparable(group, "with")
    if problem:
        yield problem
        return
    for x in members(group, "with"):
        for found in x.choices.values():
            one = said(x, found, context)
            if not one.tells:
                yield Inconclusive("the forced token shows no text that could repeat")
            elif one.piece is not None:
                yield Satisfied(found.at)
            else:
                shown = show(list(one.tokens)) if one.tokens else show(one.text)
                ids = ", ".join(sorted(biased(x, FORCE)))
                told = f"with token {ids} forced the text is {shown}"
                yield Violation(f"{told}; expected one piece repeated", found.at, x.case.id)


@check(
    "effects",
    Scope.GROUP,
    group="ban",
    good=lambda: example(_ban(" is was is is", " was was was")) + example(_ban(" is is is", " was was")),
    bad=lambda: example(_ban(" is was is is", " is was is is")) + example(_natural(" is", [" so", " is"])),
)
def bias_bans(group: Group, context: CheckContext) -> Findings:
    """A token with a bias of -100 does not come.

    Applications ban words and delimiters this way; one that comes all the same breaks what is built on its absence.

    Fix: add the bias to the logits before sampling, for each token and each choice, and keep its sign.
    """
    for role in ("with", "forced"):
        problem = not_comparable(group, role)
        if problem:
            yield problem
            return
    before = members(group, "forced")[0]
    for x in members(group, "with"):
        for found in x.choices.values():
            model = before.choices.get(found.index)
            if model is not None:
                free = members(group, "without")
                said_now, said_before = said(x, found, context), said(before, model, context)
                yield attribute_to(_banned(x, said_now, said_before, free[0] if free else None, context), x.case.id)


def _banned(x: Exchange, now: Said, before: Said, free: Exchange | None, context: CheckContext) -> Finding:
    ids = ", ".join(sorted(biased(x, BAN)))
    if biased(x, FORCE):
        # Two tokens are forced, then one of them is banned: only the other is left.
        if not now.tells or not before.tells:
            return Inconclusive("the forced tokens show no text that could repeat")
        if now.piece is None:
            return Violation(f"with token {ids} banned the text is {show(now.text)}; expected the other forced token")
        if now.piece == before.piece:
            return Inconclusive("the banned token did not come without the ban either")
        return Satisfied()
    piece = before.piece
    if not before.tells or piece is None:
        return Inconclusive("forcing the token does not show what it looks like")
    if piece in now.tokens:
        told = f"token {ids} is {show(piece)} and comes though banned: {show(list(now.tokens))}"
        return Violation(f"{told}; expected other tokens")
    natural = said(free, free.choices[0], context).tokens if free is not None and 0 in free.choices else ()
    if piece not in natural:
        return Inconclusive(f"{show(piece)} does not come without the ban either")
    if not now.tokens:
        return Inconclusive("the tokens are not told, so a banned one cannot be recognised")
    return Satisfied()


def _force(x: Exchange) -> Group:
    return Group("force", "11", {"without": (plain(completion(choice()), {"temperature": 0}),), "with": (x,)})


def _ban(before: str, after: str) -> Group:
    two: dict[str, Any] = {"temperature": 0, "logit_bias": {"11": 100, "12": 100}}
    one: dict[str, Any] = {"temperature": 0, "logit_bias": {"11": -100, "12": 100}}
    forced, banned = plain(completion(choice(before)), two), plain(completion(choice(after)), one)
    return Group("ban", "11", {"forced": (forced,), "with": (banned,)})


def _natural(piece: str, after: list[str]) -> Group:
    """A token is forced to see its text, and banned where it would come by itself."""
    free = {"temperature": 0, "logprobs": 1}
    tokens = [" it", piece]
    return Group(
        "ban",
        "11",
        {
            "forced": (_forced(piece * 4, [piece] * 4),),
            "without": (plain(completion(choice("".join(tokens), logprobs=logprobs(tokens))), free),),
            "with": (
                plain(
                    completion(choice("".join(after), logprobs=logprobs(after))), {**free, "logit_bias": {"11": -100}}
                ),
            ),
        },
    )
