"""Requests made from what the target replied: stop sequences cut from its text, its own tokens, its context length."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from conformance.model import Membership, RequestCase, Validity
from conformance.model.exchange import Exchange
from conformance.model.json_text import dumps
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import BIAS_TOKENS, PROMPT, TOKENS_LONG, PlanContext, part
from conformance.plan.factors import (
    IDS,
    TEXTS,
    UNICODE,
    UNLIKELY_STOP,
    allowed_members,
    gate_choices,
    streaming,
    sure_members,
)
from conformance.plan.relations import SUFFIX

Patch = Mapping[str, Any]
# What stands for replies that are still to come, so that the budget counts what follows from them.
ASSUMED_TEXT: Final = ", five, six, seven, eight,"
ASSUMED_TOKEN: Final = 11
TABLE: Final = 256  # ids whose spelling is looked up; frequent tokens have small ids in most vocabularies
BEYOND: Final = 44  # ids more, so that a prompt is longer than a window of that many tokens
SMALLEST_CONTEXT, LARGEST_CONTEXT = 64, 8192  # filling a larger one would cost more than it shows
ROOM: Final = 8  # tokens that a prompt leaves of the context
LONG_IN_TOKENS: Final = "xqzjkvw"  # letters that stand alone
SHORTEST_CUT: Final = 6  # characters that a text must have to be cut in two places
LONG_STOP: Final = 20  # characters of a stop sequence of several words, which a short buffer does not hold
STOPPED: Final = frozenset({"cut", "uncut", "never"})  # the groups in which a text without stop sequences has a role
# In `gate`, what leads to texts with characters that code treats specially; and the texts that are assumed to follow.
PROVOKING_OF_GATE: Final = ("東京、大阪、名古屋、京都、東京、大阪、", "Blue\nGold\nWhite\n")
ASSUMED_TEXTS: Final = (ASSUMED_TEXT, "東京、大阪", "Red\nBlue")
ECHOES: Final = ("alone", "streamed behind another")  # how a generated text is scored again
PATTERN: Final = ".*"  # matches any text where it is taken for a regular expression
NOT_ASCII: Final = re.compile(r"[^\x00-\x7f\s]+")
SPECIAL: Final = re.compile(r"[.^$*+?{}\[\]\\|()<>&]+")
WHITE_SPACE: Final = re.compile(r"\s+")


def prerequisites(context: PlanContext) -> Iterator[CaseGroup]:
    """The requests whose replies the follow-ups are made from."""
    if _cuts_texts(context):
        for rank, (name, patch) in _cut_settings(context):
            assumed = _stops(context, name, patch, ASSUMED_TEXTS)
            cuts = [case for case_group in assumed for case in case_group.cases]
            roles = [membership for case in cuts for membership in case.groups if membership.kind in STOPPED]
            groups = [part(membership.kind, membership.key, "without") for membership in roles]
            if any(membership.kind == "accept" for case in cuts for membership in case.groups):
                groups += _stop_is_accepted(context, name, "control")
            first = context.case("relation", _long(context, patch), *groups)
            phase = "rows" if gate_choices(context) else "values"  # what combines values waits until each was tried
            yield CaseGroup(phase, rank, (first,), then=CaseGroup("learned", rank, tuple(cuts)))
    if _bans_tokens(context):
        free = context.case("relation", _free(context), part("ban", "natural", "without"))
        then = CaseGroup("learned", Rank.NORMAL, _ban(context, ASSUMED_TOKEN))
        yield CaseGroup("values", Rank.NORMAL, (free, context.case("relation", _table(context))), then=then)
    if _scores_texts(context):
        generated = context.case("relation", _free(context), *(part("scored", key, "generated") for key in ECHOES))
        then = CaseGroup("learned", Rank.NORMAL, _echoes(context, ASSUMED_TEXT))
        yield CaseGroup("values", Rank.NORMAL, (generated,), then=then)


def follow_ups(context: PlanContext) -> Iterator[CaseGroup]:
    """The requests that follow from the replies."""
    if _cuts_texts(context):
        for _, (name, patch) in _cut_settings(context):
            # other groups may have sent the same request, but the cut is compared with it only in this role
            if part("cut", f"inside {name}", "without") not in context.known.roles:
                continue
            long = _long(context, patch)
            texts = [_completion(context, long, index) for index in range(context.request(long).choices)]
            yield from _stops(context, name, patch, texts)
    if _bans_tokens(context) and part("ban", "natural", "without") in context.known.roles:
        free, table = (context.known.reply(dumps(body).encode()) for body in (_free(context), _table(context)))
        token = _natural_token(free, table)
        if token is not None:
            yield CaseGroup("learned", Rank.ESSENTIAL, _ban(context, token))
        elif context.full:
            yield from _ban_one_of_two(context)
    yield from _scored_again(context)
    if context.full:
        yield from _filled_context(context)


def _cuts_texts(context: PlanContext) -> bool:
    return "cut" in context.kinds and context.greedy and context.has("stop", "max_tokens")


def _bans_tokens(context: PlanContext) -> bool:
    return "ban" in context.kinds and context.greedy and context.has("logit_bias", "logprobs", "echo")


def _scores_texts(context: PlanContext) -> bool:
    return context.full and "scored" in context.kinds and context.greedy and context.has("logprobs", "echo")


def _scored_again(context: PlanContext) -> Iterator[CaseGroup]:
    sent = _scores_texts(context) and part("scored", "alone", "generated") in context.known.roles
    text = context.known.text(dumps(_free(context)).encode()) if sent else ""
    if text:
        yield CaseGroup("learned", Rank.NORMAL, _echoes(context, text))


def _echoes(context: PlanContext, text: str) -> tuple[RequestCase, ...]:
    """A generated text as the end of a prompt that is echoed: alone, and streamed behind another prompt."""
    none = context.validity_alone({"echo": True, "max_tokens": 0}) is Validity.VALID
    least = allowed_members(context, {"max_tokens": 0 if none else 1})
    patch = {"prompt": PROMPT + text, "echo": True, "logprobs": 1, **least}
    behind = allowed_members(context, {**patch, **streaming(context), "prompt": [PROMPT, PROMPT + text]})
    bodies = zip(ECHOES, (context.body(patch), context.body(behind)), strict=True)
    return tuple(
        context.case("relation", body, part("scored", key, "echoed")) for key, body in bodies if context.may_send(body)
    )


def _cut_settings(context: PlanContext) -> Iterator[tuple[Rank, tuple[str, Patch]]]:
    if not context.full:
        scored = {"prompt": [PROMPT, *PROVOKING_OF_GATE], "logprobs": 1}
        for several in ({**scored, "n": 3}, scored, {}):
            kept = sure_members(context, several)
            if context.may_send(_long(context, kept)):
                yield Rank.RELEVANT, ("plain", kept)
                return
        return
    yield Rank.RELEVANT, ("plain", {})
    for name, patch in (
        ("batch of choices", {**TEXTS.patch, "n": 2, "logprobs": 1}),
        ("echoed", {"echo": True}),
        ("unicode", {"prompt": UNICODE}),
        ("selected ids", {"prompt": list(IDS), "best_of": 3, "n": 2, "logprobs": 1, "suffix": SUFFIX}),
    ):
        kept = allowed_members(context, patch)
        if kept and (kept == patch or len(patch) > 1):
            yield Rank.NORMAL, (name, kept)


def _long(context: PlanContext, patch: Patch) -> dict[str, Any]:
    return context.body(patch, {"max_tokens": TOKENS_LONG})


def _completion(context: PlanContext, body: Mapping[str, Any], index: int) -> str:
    """The text of a choice in the reply to a request, without the prompt that it echoes."""
    text = context.known.text(dumps(body).encode(), index)
    request = context.request(body)
    prompt = request.prompts[index // request.n] if request.prompts else ""
    echoed = bool(body.get("echo")) and isinstance(prompt, str) and text.startswith(prompt)
    return text[len(prompt) :] if echoed else text


def _stops(context: PlanContext, name: str, patch: Patch, texts: Sequence[str]) -> Iterator[CaseGroup]:
    """Stop sequences made from the texts of a setting: those that cut them, and those that must not."""
    if context.full:
        yield from _unmatched(context, name, patch, texts)
        yield from _cuts(context, name, patch, texts[0])
    else:
        yield from _cuts(context, name, patch, texts[0])
        yield from _cuts_of_classes(context, name, patch, texts)


def _nearly_key(name: str) -> str:
    return f"stop nearly {name}"


def _unmatched(context: PlanContext, name: str, patch: Patch, texts: Sequence[str]) -> Iterator[CaseGroup]:
    """Sequences that begin as a text does, or as it ends, and go on otherwise; and one of an echoed prompt only.

    What may become a stop sequence is held back, and must be sent when it does not, at the limit as well.
    """
    text = texts[0]
    if len(text) < SHORTEST_CUT:
        return
    stops = [nearly(text), text[-2:] + UNLIKELY_STOP[0]]
    prompt = next((prompt for prompt in context.request(context.body(patch)).prompts if isinstance(prompt, str)), "")
    if patch.get("echo"):
        stops += [word for word in re.findall(r"\w{3,}", prompt) if not any(word in text for text in texts)][-1:]
    listed = context.first_allowed("stop", stops, stops[:1], stops[0])
    streamed = streaming(context) if context.has("stream") else {}
    body = context.body(patch, {"max_tokens": TOKENS_LONG, **listed}, streamed)
    if listed and context.may_send(body):
        roles = (part("never", _nearly_key(name), "with"), part("uncut", _nearly_key(name), "with"))
        case = context.case("relation", body, *roles)
        yield CaseGroup("learned", Rank.RELEVANT, (case,))


def _cuts(context: PlanContext, name: str, patch: Patch, text: str) -> Iterator[CaseGroup]:
    """The text cut inside, plain, and at the earliest of several stop sequences, streamed."""
    stops = pieces(text)
    if not stops:
        return
    early, late = stops
    if name == "unicode":
        before = text[: text.index(late)]
        early = next((char for char in before[2:] if not char.isascii() and not char.isspace()), early)
    streamed = streaming(context) if context.has("stream") else {}
    # in `gate` the one that cuts comes last of four, after one that is a pattern to some servers
    pattern = () if context.full or PATTERN in text else (PATTERN,)
    listed = [nearly(text), *pattern, late, early]
    of_words = several_words(text) or early
    variants: list[tuple[str, tuple[Any, ...], Patch]] = [
        ("inside", (early, [early]) if context.full else (of_words, [of_words]), {}),
        ("earliest", (listed, [late, early]), streamed),
    ]
    if context.full:
        of_word, begin = inside_a_word(text), text[: 2 if text[0].strip() else 3]
        variants += [("inside a word", (list(of_word),), {})] if of_word and name == "plain" else []
        if name in {"plain", "batch of choices"}:
            variants += [("at once", ([begin], begin), {})]
            variants += [("several words", ([of_words], of_words), streamed)] if of_words != early else []
    for place, forms, channel in variants:
        bodies = (context.body(patch, {"max_tokens": TOKENS_LONG, "stop": stop}, channel) for stop in forms)
        if cut := next(filter(context.may_send, bodies), None):
            sure = place == "inside" and context.validity_of(cut) is Validity.VALID
            accepted = _stop_is_accepted(context, name, "probe") if sure else []
            # of several texts, those that no sequence cuts
            roles = [part(kind, f"{place} {name}", "with") for kind in ("cut", "uncut")]
            case = context.case("cut", cut, *roles, *accepted)
            yield CaseGroup("learned", Rank.ESSENTIAL, (case,))


def _cuts_of_classes(context: PlanContext, name: str, patch: Patch, texts: Sequence[str]) -> Iterator[CaseGroup]:
    """The texts cut at sequences of other classes than words: what is not ASCII, special characters, white space."""
    body = _long(context, patch)
    stops = of_classes(texts)
    for stop in ([*stops], *stops):
        cut = {**body, "stop": stop}
        if stops and context.may_send(cut):
            # some targets drop the space that a text begins with, so that a space may cut a text before it is seen
            groups = [part("cut", f"classes {name}", "with")] if all(sequence.strip(" ") for sequence in stops) else []
            case = context.case("cut", cut, *groups)
            yield CaseGroup("learned", Rank.ESSENTIAL, (case,))
            return


def of_classes(texts: Sequence[str]) -> list[str]:
    """Up to three sequences that occur in the texts, not at their beginning, white space last."""
    sequences = []
    for pattern in (NOT_ASCII, SPECIAL, WHITE_SPACE):
        matches = [match[0] for text in texts for match in pattern.finditer(text, 1) if "\ufffd" not in match[0]]
        sequences += sorted(matches, key=lambda match: not match.strip(" "))[:1]
    return sequences


def _stop_is_accepted(context: PlanContext, name: str, role: str) -> list[Membership]:
    """The role of a text and of its cut in showing that a stop sequence is accepted, which no request tries alone."""
    row = "request.stop.accepts"
    return [part("accept", f"{row} cut {name}", role)] if row in context.rows else []


def several_words(text: str) -> str:
    """A stop sequence of several words, longer than many buffers; empty where the text is too short for one."""
    start = next((index for index, char in enumerate(text) if index > 1 and char.isspace()), len(text))
    return text[start - 1 : start - 1 + LONG_STOP] if len(text) > start + LONG_STOP else ""


def inside_a_word(text: str) -> tuple[str, str] | None:
    """Two stop sequences inside one word, hence mostly inside one token, the later one first."""
    word = max(re.findall(r"[^\W\d_]{4,}", text[1:]), key=len, default="")
    return (word[2:4], word[:2]) if word else None


def nearly(text: str) -> str:
    """A stop sequence that begins as the text does, over a token or more, and ends otherwise."""
    return text[1:5] + UNLIKELY_STOP[0]


def pieces(text: str) -> tuple[str, str] | None:
    """Two stop sequences from a text, the second one later: each spans a word's beginning, so two tokens or more."""
    if len(text) < SHORTEST_CUT:
        return None
    gaps = [index for index, char in enumerate(text) if char.isspace() and 0 < index < len(text) - 1]
    middle = len(text) * 2 // 5
    first = min(gaps, key=lambda gap: abs(gap - middle), default=middle)
    last = max([gap for gap in gaps if gap > first + 2], default=len(text) - 2)
    early, late = text[max(first - 1, 0) : first + 2], text[last - 1 : last + 2]
    return (early, late) if early.strip() and late.strip() and early != late else None


def _free(context: PlanContext) -> dict[str, Any]:
    return context.body({"logprobs": 1, "max_tokens": TOKENS_LONG})


def _table(context: PlanContext) -> dict[str, Any]:
    """The first ids of the vocabulary, echoed with log probabilities: the reply spells each of them."""
    ids = [*range(TABLE), *range(BEYOND)]
    return context.body({"prompt": ids, "echo": True, "logprobs": 1, "max_tokens": 1})


def _ban(context: PlanContext, token: int) -> tuple[RequestCase, ...]:
    """A token that occurs in the free text is forced, to see its spelling, and banned, so that it must not occur.

    Its id is read from the table of spellings; without it, the ban cannot be judged.
    """
    forced = context.body({"logprobs": 1, "logit_bias": {str(token): 100}})
    banned = {**_free(context), "logit_bias": {str(token): -100}}
    # a ban may be lost in a stream, for a second prompt or choice; prompts are equal, so that each text has the token
    setting = {**streaming(context), "prompt": [PROMPT, PROMPT], "n": 2} if context.full else {}
    streamed = context.body(banned, allowed_members(context, setting))
    return (
        context.case("relation", forced, part("ban", "natural", "forced"), part("force", f"{token} learned", "with")),
        context.case("relation", banned, part("ban", "natural", "with")),
        *([context.case("relation", streamed, part("ban", "natural", "with"))] if streamed != banned else []),
    )


def _ban_one_of_two(context: PlanContext) -> Iterator[CaseGroup]:
    """Two tokens are forced, then one of them banned, so that the other is left: for tokens whose ids are unknown."""
    for banned, other in (BIAS_TOKENS, BIAS_TOKENS[::-1]):
        bodies = [context.body({"logit_bias": {banned: bias, other: 100}}) for bias in (100, -100)]
        cases = [
            context.case("relation", body, part("ban", f"{banned} pair", role))
            for role, body in zip(("forced", "with"), bodies, strict=True)
        ]
        yield CaseGroup("learned", Rank.NORMAL, tuple(cases))


def _natural_token(free: Exchange | None, table: Exchange | None) -> int | None:
    """The id of a token of the free text, by its spelling in the table."""
    # the last token was generated, and a BOS token may come first
    spelled = _tokens(table)[-TABLE - BEYOND - 1 : -1] if table else []
    if len(spelled) < TABLE + BEYOND:
        return None
    spelled = spelled[:TABLE]
    text = free.choices[0].text if free and 0 in free.choices else ""
    # a token that is a part of a character is spelled as bytes, and shows nothing when it is forced
    tokens = [token for token in (_tokens(free) if free else []) if token.strip() and token in text]
    return next((spelled.index(token) for token in tokens if spelled.count(token) == 1), None)


def _tokens(exchange: Exchange) -> list[str]:
    lists = exchange.choices[0].logprobs if 0 in exchange.choices else None
    return [token for token in (lists or {}).get("tokens", []) if isinstance(token, str)]


def _filled_context(context: PlanContext) -> Iterator[CaseGroup]:
    """A prompt that leaves room for 8 tokens, with a limit of 8 and of 16, where a refusal named the context length.

    It stands alone, and behind a short one, since a server may measure the first prompt of a batch only; and it is
    longer than the context, since a server may cut it. Where no length is known, it is longer than many contexts.
    """
    size = context.known.context()
    row = context.contract.binding("context_overflow")
    if row is None or row.params.get("behaviour") != "refuse":
        return
    if size is None:
        short: Patch = {"prompt": list(IDS), "max_tokens": 1}
        bodies = [context.body(short), context.body(short, {"prompt": _ids(LARGEST_CONTEXT + ROOM)})]
        if all(map(context.may_send, bodies)):
            yield _overflowing(context, f"{row.id} unknown", "long", *bodies)
        return
    if not SMALLEST_CONTEXT <= size <= LARGEST_CONTEXT:
        return
    ids = _ids(size - ROOM)
    alone: Patch = {"prompt": ids, "max_tokens": ROOM}
    longer = {"prompt": _ids(size + ROOM)}
    # each of these letters is a token, and a server may reckon with several characters a token
    text = " ".join(LONG_IN_TOKENS[place % len(LONG_IN_TOKENS)] for place in range(size))
    probes: list[tuple[str, Patch]] = [
        ("alone", {"max_tokens": 2 * ROOM}),
        ("longer", longer),
        ("text", {"prompt": text, "max_tokens": 2 * ROOM}),
    ]
    batch: Patch = {"prompt": [list(IDS), ids]}
    if context.may_send(context.body(batch)):
        probes.append(("behind another", {**batch, "max_tokens": 2 * ROOM}))
    for name, patch in probes:
        key = f"{row.id} {name} filled"
        yield _overflowing(context, key, "probe", context.body(alone), context.body(alone, patch))


def _overflowing(context: PlanContext, key: str, role: str, *bodies: Mapping[str, Any]) -> CaseGroup:
    """A request that may be more than the context holds, behind its control."""
    cases = [
        context.case("edge", body, part("overflow", key, name), validity=Validity.UNSPECIFIED)
        for name, body in zip(("control", role), bodies, strict=True)
    ]
    return CaseGroup("learned", Rank.NORMAL, tuple(cases))


def _ids(number: int) -> list[int]:
    return [40 + index % 48 for index in range(number)]


__all__ = ["follow_ups", "nearly", "of_classes", "pieces", "prerequisites"]
