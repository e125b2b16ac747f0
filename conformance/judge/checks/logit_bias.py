"""Logit bias, judged without a tokenizer: a forced token repeats, whatever it is, and a banned one does not occur."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformance.judge.catalogue import CheckContext, Findings, Scope, check, show
from conformance.judge.checks.logprobs import is_number, token_strings
from conformance.judge.checks.stop import generated_text
from conformance.judge.comparison import attribute_to, counted, members, not_comparable
from conformance.judge.fixtures import choice, completion, example, logprobs, plain, usage
from conformance.judge.token_text import repeated_piece
from conformance.model import Finding, Inconclusive, Satisfied, Violation
from conformance.model.exchange import Choice, Exchange, Group

FORCE, BAN = 100, -100


@dataclass(frozen=True)
class BiasedText:
    """The generated text of a choice with its tokens and their number, where these are known."""

    text: str
    tokens: tuple[str, ...]
    count: int | None
    reasoned: bool = False  # part of the generated text is not shown

    @property
    def piece(self) -> str | None:
        """The one token of which the text is a repetition; None where there are several, or only one position."""
        if len(self.tokens) > 1:
            # The first token of a text may be shown without its leading space.
            distinct = {token.removeprefix(" ") for token in self.tokens}
            return self.tokens[-1] if len(distinct) == 1 else None
        return repeated_piece(self.text, self.count) if self.text else None

    @property
    def is_conclusive(self) -> bool:
        """Whether there is more than one position to compare, and no incomplete character."""
        positions = len(self.tokens) if self.tokens else self.count if self.count is not None else len(self.text)
        readable = positions > 1 and bool(self.text) and "\ufffd" not in self.text
        return readable and not (self.reasoned and self.piece is None)


def biased_text(x: Exchange, answer: Choice, context: CheckContext) -> BiasedText:
    """The generated text of a choice with what is known of its tokens."""
    request = context.request(x)
    is_counted = request.choices == 1 and request.best_of == 1 and not answer.reasoned
    tokens = token_strings(answer.logprobs or {}) if not request.echo else None
    return BiasedText(
        text=generated_text(request, answer) or "",
        tokens=tuple(tokens or ()),
        count=counted(x, "completion_tokens") if is_counted else None,
        reasoned=answer.reasoned,
    )


def biased_ids(x: Exchange, value: float) -> set[str]:
    """The ids of the tokens that have this bias in the request, or a stronger one of the same sign."""
    body = x.case.body
    bias = body.get("logit_bias") if isinstance(body, Mapping) else None
    if not isinstance(bias, Mapping):
        return set()
    numbers = {token: number for token, number in bias.items() if is_number(number)}
    return {token for token, number in numbers.items() if (number >= value if value > 0 else number <= value)}


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
    """A token with a bias of 100 is the only one that is generated.

    Classifiers limit answers to a few tokens this way; a bias without effect lets any text through.

    Fix: add the bias to the logits before sampling, for each token and each choice, and read ids given as strings.
    """
    problem = not_comparable(group, "with")
    if problem:
        yield problem
        return
    for x in members(group, "with"):
        for answer in x.choices.values():
            forced = biased_text(x, answer, context)
            if not forced.is_conclusive:
                yield Inconclusive("the text with the forced token is too short to show a repetition")
            elif forced.piece is not None:
                yield Satisfied(answer.at)
            else:
                text = show(list(forced.tokens)) if forced.tokens else show(forced.text)
                ids = ", ".join(sorted(biased_ids(x, FORCE)))
                observed = f"with token {ids} forced the text is {text}"
                yield Violation(f"{observed}; expected one piece repeated", answer.at, case=x.case.id)


@check(
    "effects",
    Scope.GROUP,
    group="ban",
    good=lambda: example(_ban(" is was is is", " was was was")) + example(_ban(" is is is", " was was")),
    bad=lambda: example(_ban(" is was is is", " is was is is")) + example(_natural(" is", [" so", " is"])),
)
def bias_bans(group: Group, context: CheckContext) -> Findings:
    """A token with a bias of -100 is not generated.

    Applications ban words and delimiters this way; one that occurs all the same breaks what relies on its absence.

    Fix: add the bias to the logits before sampling, for each token and each choice, and keep its sign.
    """
    for role in ("with", "forced"):
        problem = not_comparable(group, role)
        if problem:
            yield problem
            return
    forced = members(group, "forced")[0]
    without = next(iter(members(group, "without")), None)
    for x in members(group, "with"):
        for answer in x.choices.values():
            forced_answer = forced.choices.get(answer.index)
            if forced_answer is not None:
                banned_text, forced_text = biased_text(x, answer, context), biased_text(forced, forced_answer, context)
                yield attribute_to(_finding_on_ban(x, banned_text, forced_text, without, context), x.case.id)


def _finding_on_ban(
    x: Exchange, banned_text: BiasedText, forced_text: BiasedText, without: Exchange | None, context: CheckContext
) -> Finding:
    """The finding on a text with a banned token, beside the text with the same token forced, and one without bias."""
    ids = ", ".join(sorted(biased_ids(x, BAN)))
    if biased_ids(x, FORCE):
        # Two tokens are forced, then one of them is banned: only the other is left.
        if not banned_text.is_conclusive or not forced_text.is_conclusive:
            return Inconclusive("the texts with the forced tokens are too short to show a repetition")
        if banned_text.piece is None:
            return Violation(
                f"with token {ids} banned the text is {show(banned_text.text)}; expected the other forced token"
            )
        if banned_text.piece == forced_text.piece:
            return Inconclusive("the banned token did not occur without the ban either")
        return Satisfied()
    piece = forced_text.piece
    if not forced_text.is_conclusive or piece is None:
        return Inconclusive("the text with the forced token does not show the text of that token")
    if piece in banned_text.tokens:
        observed = f"token {ids} is {show(piece)} and occurs though banned: {show(list(banned_text.tokens))}"
        return Violation(f"{observed}; expected other tokens")
    answer = without.choices.get(0) if without is not None else None
    if without is None or answer is None or piece not in biased_text(without, answer, context).tokens:
        return Inconclusive(f"{show(piece)} does not occur without the ban either")
    if not banned_text.tokens:
        return Inconclusive("no tokens are returned, so a banned one cannot be recognised")
    return Satisfied()


def _force(x: Exchange) -> Group:
    return Group("force", "11", {"without": (plain(completion(choice()), {"temperature": 0}),), "with": (x,)})


def _ban(before: str, after: str) -> Group:
    both: dict[str, Any] = {"temperature": 0, "logit_bias": {"11": 100, "12": 100}}
    one_banned: dict[str, Any] = {"temperature": 0, "logit_bias": {"11": -100, "12": 100}}
    forced, banned = plain(completion(choice(before)), both), plain(completion(choice(after)), one_banned)
    return Group("ban", "11", {"forced": (forced,), "with": (banned,)})


def _natural(piece: str, after: list[str]) -> Group:
    """A token that is forced, to show its text, and banned where it occurs without a bias."""
    unbiased = {"temperature": 0, "logprobs": 1}
    tokens = [" it", piece]
    return Group(
        "ban",
        "11",
        {
            "forced": (_forced(piece * 4, [piece] * 4),),
            "without": (plain(completion(choice("".join(tokens), logprobs=logprobs(tokens))), unbiased),),
            "with": (
                plain(
                    completion(choice("".join(after), logprobs=logprobs(after))),
                    {**unbiased, "logit_bias": {"11": -100}},
                ),
            ),
        },
    )
