"""Invalid requests: each breaks exactly one rule that a row promises to enforce, beside a control that breaks none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from conformance.contract.bounds import format_bound, top
from conformance.contract.openapi import branches
from conformance.contract.validity import combines
from conformance.model import Combination, Level, Limit, Membership, RequestCase, Requirement, Validity
from conformance.model.json_text import MISSING, dumps
from conformance.plan.boundaries import beyond, shaped
from conformance.plan.case_group import CaseGroup, Rank
from conformance.plan.context import PROMPT, PlanContext, part
from conformance.plan.drawn_requests import LOOK_ALIKE, NUMERIC, changes, drawn_requests
from conformance.plan.expected_defects import parsers
from conformance.plan.factors import (
    ABSENT,
    IDS,
    OTHER_IDS,
    SCORED,
    SECOND_PROMPT,
    STREAM,
    USAGE,
    allowed_members,
    factors,
    first_level_value,
    likely_stop,
    streaming,
)
from conformance.plan.input_model import (
    EXTREMES,
    WRONG_NAMES,
    InputClass,
    entries,
    inputs,
    invalid_classes,
    near_misses,
    wrong_type,
)
from conformance.plan.parameter_values import inside

Labelled = tuple[str, Any]
# What is sent beside the value that breaks a rule. A server that builds each kind of reply on a path of its own may
# check its input on some of them only, so the refusals of `full` take turns over the smallest request and rich ones.
BATCH: Final[Mapping[str, Any]] = {"prompt": [PROMPT, SECOND_PROMPT], "n": 2, "temperature": 1}
SETTINGS: Final[tuple[Mapping[str, Any], ...]] = (
    # everything that a server may read first, so that it overlooks the value in question
    {
        **BATCH,
        **USAGE.patch,
        "logprobs": 1,
        "echo": True,
        "seed": 7,
        "top_p": 0.9,
        "frequency_penalty": 0.5,
        "presence_penalty": 0.5,
        "user": "someone",
    },
    {**BATCH, "echo": True},
    {},
    STREAM.patch,
    {"prompt": list(IDS), "best_of": 2, "suffix": " and so on.", "max_tokens": 1},
)
# Two classes of a row meet all that changes how a request is read; each further one meets another setting.
ORDER: Final = (0, 2, 1, 3, 4)
FEW: Final = 1  # classes of a row
# The settings of `gate`, by turns: a sampled stream, and plain, greedy and ended by the limit at once. Few tokens,
# because a target that checks nothing answers each of these requests.
STREAMED: Final[Mapping[str, Any]] = {**SCORED, "max_tokens": 2, "temperature": ABSENT, **USAGE.patch}
GREEDY: Final[Mapping[str, Any]] = {**SCORED, "prompt": [list(IDS), list(OTHER_IDS), list(IDS)], "max_tokens": 1}
GATE_SETTINGS: Final[tuple[Mapping[str, Any], ...]] = (STREAMED, GREEDY, STREAMED, {}, STREAMED)
CHECK: Final = "invalid_is_refused"
LOOK_ALIKES: Final = 3  # of the classes of a row, in turn, those from which the least tried is taken
MOST: Final = 2  # breaking requests for one row
OVERSIZED: Final = 2**31  # a number of choices from here on could exhaust the memory of a server


def invalid_requests(context: PlanContext, drawn: Iterable[Mapping[str, Any]] = ()) -> Iterator[CaseGroup]:
    """Requests that break one row each: in `full` with every class that breaks it, in `gate` with one."""
    yield from _every_class(context, drawn) if context.full else _gate(context)


def _every_class(context: PlanContext, drawn: Iterable[Mapping[str, Any]]) -> Iterator[CaseGroup]:
    """Every class that breaks a row but, the first of each row aside, those of which a drawn body is sent."""
    drawn_too = _drawn_classes(context, drawn)
    turn = context.seed
    rows_sent = 0  # so that a class meets one setting after another
    paired: set[str] = set()  # keywords of which a class was sent on both channels
    for row in _rows(context):
        changes_of_row = _breaking(context, row, turn)
        changes_of_row = [
            *changes_of_row[:1],
            *(change for change in changes_of_row[1:] if (row.params.get("parameter"), change[0]) not in drawn_too),
        ]
        for index, (label, patch) in enumerate(changes_of_row):
            if is_oversized(context, patch):
                continue  # see `oversized_counts`
            keyword = str(row.params.get("keyword", row.id))
            # few classes of a row do not meet all settings, so that one of them is sent on both channels
            both = not index and (len(changes_of_row) <= FEW or keyword not in paired or turn == context.seed)
            paired.add(keyword)
            # twice, because the classes of a row are rotated by one from row to row
            number = ORDER[(index + 2 * rows_sent) % len(changes_of_row) % len(ORDER)]
            cases = _cases(context, row, label, patch, number, both=both)
            yield CaseGroup("values", _rank(context, row, index), tuple(cases))
        turn += bool(changes_of_row)
        rows_sent += 1


def _drawn_classes(context: PlanContext, drawn: Iterable[Mapping[str, Any]]) -> frozenset[tuple[str, str]]:
    """The members, and the classes of their types, of the drawn bodies that are surely sent to be refused."""
    sure = [group for group in drawn_requests(context, drawn) if group.guaranteed and len(group.cases) > 1]
    pairs = [(group.cases[0].body, group.cases[1].body) for group in sure]
    return frozenset(
        (name, wrong_type(body[name])) for host, body in pairs for name in changes(host, body) if name in body
    )


def _breaking(context: PlanContext, row: Requirement, turn: int) -> list[tuple[str, dict[str, Any]]]:
    """The changes of the base request that break a row and nothing else, with labels."""
    wanted = row.params.get("combination")
    rule = next((rule for rule in context.contract.combinations if rule.id == wanted), None)
    if rule is not None:
        return _combination(context, rule)
    return [change for change in _changes(context, row, turn) if _breaks_one_rule(context, change[1])]


def breaking_classes(context: PlanContext) -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    """Each class that breaks a row: its input, its name, the members that have it, and the key of `input_classes`."""
    turn = context.seed
    for row in context.rows_on("refuse"):
        if row.area in {"protocol", "auth"}:
            continue
        changes = _breaking(context, row, turn)
        turn += bool(changes)
        for label, patch in changes:
            (name, value), *others = patch.items()
            path = str(row.params.get("parameter", name))
            any_value = path == name and row.params.get("keyword") == "type" and label in WRONG_NAMES.values()
            key = f"{row.id} {label}" if others else InputClass(name, label, value, any_value=any_value).key
            yield path, label, patch, key


def _gate(context: PlanContext) -> Iterator[CaseGroup]:
    """One class for each row. Those that a server treats alike are sent with one parameter and setting after another.

    A look-alike that is refused proves that the type is checked as well, so no value of another kind is needed.
    """
    turn, sent, rich = context.seed, Counter[str](), Counter[str]()
    spare: dict[str, tuple[Requirement, dict[str, Any]]] = {}
    numerals: set[str] = set()  # classes that parsers convert to a number: the first of each is guaranteed
    for row in sorted(_rows(context), key=lambda row: not _fits_rich(context, row)):
        changes = _breaking(context, row, turn)
        keyword = row.params.get("keyword")
        if not changes or _is_shown_by_look_alikes(context, row):
            continue
        kinds: tuple[str, ...] = (f"{CHECK} {keyword}",)
        number, (label, patch) = turn, changes[0]
        if keyword in {"type", "coercion"}:
            tried = {name: _kinds(context, name, other) for name, other in changes}
            likely = changes if keyword == "coercion" else changes[:LOOK_ALIKES]
            label, patch = min(likely, key=lambda change: (sent[tried[change[0]][0]], -parsers(change[0])))
            number, kinds = sent[tried[label][0]], tried[label]
            sent.update(kinds)
            if keyword == "coercion" and _fits_rich(context, row):
                rich.update(kinds)
                spare = {name: (row, other) for name, other in changes} | spare
        rank = Rank.RELEVANT if keyword == "coercion" else _rank(context, row, 0)
        cases = tuple(_cases(context, row, label, patch, number, both=turn == context.seed))
        # groups with a low rank come late, to leave room for isolating values that are wrongly rejected
        phase = "learned" if rank >= Rank.EXTRA else "rows" if "n" in cases[0].body else "values"
        numeral = keyword == "coercion" and label not in numerals and _is_numeric(context, patch)
        numerals.update([label] if numeral else ())
        yield CaseGroup(phase, rank, cases, kinds=kinds, guaranteed=numeral)
        turn += 1
    for label, (row, patch) in spare.items():
        kinds = _kinds(context, label, patch)
        if not all(rich[kind] for kind in kinds):
            rich.update(kinds)
            cases = tuple(_cases(context, row, label, patch, 0, both=False))
            yield CaseGroup("rows", Rank.NORMAL, cases, kinds=kinds)


def types_in_doubt(context: PlanContext) -> Iterator[CaseGroup]:
    """In `gate`, a value that no parser converts for each type of which a look-alike was accepted or not sent."""
    known = {
        membership.key.partition(" ")[0]: exchange.refused
        for exchange in context.known.replies.values()
        for membership in exchange.case.groups
        if membership.role == LOOK_ALIKE
    }
    for row in () if context.full or not known else _rows(context):
        if not known.get(row.id, False) and _is_shown_by_look_alikes(context, row):
            label, patch = _breaking(context, row, context.seed)[0]
            cases = _cases(context, row, label, patch, 1, both=False)
            yield CaseGroup("learned", Rank.ESSENTIAL, tuple(cases))


def _kinds(context: PlanContext, label: str, patch: Mapping[str, Any]) -> tuple[str, str]:
    """The class of a value, and its family."""
    return f"{CHECK} {label}", f"{CHECK} {_family(context, patch)}"


def _is_numeric(context: PlanContext, patch: Mapping[str, Any]) -> bool:
    """Whether the changed members take nothing but numbers."""
    return all(context.contract.parameters[name].types <= NUMERIC for name in patch)


def _family(context: PlanContext, patch: Mapping[str, Any]) -> str:
    """The JSON type that a converted value has and those that it should have; an empty string is a kind of its own."""
    ((name, value),) = patch.items()
    kind = "empty" if value == "" else type(value).__name__
    return f"{kind} for {', '.join(sorted(context.contract.parameters[name].types))}"


def _fits_rich(context: PlanContext, row: Requirement) -> bool:
    """Whether the parameter of a row is none of those that make the rich setting."""
    name = top(str(row.params.get("parameter", "")))
    return context.has(name) and name not in STREAMED and _is_whole(context, {name: MISSING}, STREAMED)


def _is_whole(context: PlanContext, patch: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a change leaves all members of a setting that this contract and target allow."""
    setting = allowed_members(context, wanted)
    return bool(setting) and _setting(context, patch, wanted) == setting


def _rows(context: PlanContext) -> Iterator[Requirement]:
    return (row for row in context.rows_on("refuse") if row.area not in {"protocol", "auth"})


def _is_shown_by_look_alikes(context: PlanContext, row: Requirement) -> bool:
    """Whether the row is on a type whose look-alikes have a row of their own, and some are invalid."""
    coercion = context.rows.get(f"request.{row.params.get('parameter')}.coercion")
    return row.params.get("keyword") == "type" and coercion is not None and bool(_breaking(context, coercion, 0))


def _rank(context: PlanContext, row: Requirement, index: int) -> Rank:
    """The first class of each row comes before the others, which show the same row."""
    if index:
        of_type = row.params.get("keyword") in {"type", "coercion"}
        return Rank.USEFUL if context.full else Rank.EXTRA if of_type else Rank.OBSERVED
    return Rank.RELEVANT if row.level is Level.MUST else Rank.NORMAL if context.full else Rank.EXTRA


def oversized_counts(context: PlanContext) -> Iterator[RequestCase]:
    """Oversized numbers of choices, which exhaust the memory of a server that accepts them: sent last, one by one."""
    for row in context.rows_on("refuse") if context.full else ():
        if row.params.get("keyword") == "maximum":
            for label, patch in list(_changes(context, row, context.seed))[:MOST]:
                if is_oversized(context, patch) and _breaks_one_rule(context, patch):
                    probe = part("refuse", f"{row.id} {label}", "probe")
                    yield context.case("invalid", context.body(patch), probe, breaks=(row.id,), hostile=True)


def is_oversized(context: PlanContext, patch: Mapping[str, Any]) -> bool:
    """Whether members ask for more choices than a server that accepts them could hold."""
    counts = (value for name, value in patch.items() if context.traits(name).multiplies_cost)
    return any(isinstance(count, (int, float)) and count >= OVERSIZED for count in counts)


def _cases(
    context: PlanContext, row: Requirement, label: str, patch: Mapping[str, Any], turn: int, *, both: bool
) -> Iterator[RequestCase]:
    if "stream_options" in patch and "stream" not in patch and context.has("stream"):
        if context.full and not turn and "combination" not in row.params:
            rich = {**USAGE.patch, **_batch(context, patch)}
            yield from _pair(context, row, f"{label}, in a streamed batch", patch, rich)
        else:
            yield from _pair(context, row, f"{label}, streamed", patch, USAGE.patch)
    elif "stream" in patch or not context.has("stream"):
        if context.full and not turn and "combination" not in row.params:
            yield from _pair(context, row, f"{label}, in a batch", patch, _batch(context, patch))
        else:
            yield from _pair(context, row, label, patch, {})
            if context.full and not turn and (batch := _setting(context, patch, BATCH)):
                yield from _pair(context, row, f"{label}, in a batch", patch, batch)
    elif both:
        # a streamed request must be refused before the stream begins, with the same error
        key = f"{row.id} {label}"
        yield from _pair(context, row, label, patch, {}, part("channel", key, "plain"))
        # in a batch of several choices as well, so that one request shows it beside all three
        way = _setting(context, patch, SETTINGS[0]) if context.full else streaming(context)
        yield from _pair(context, row, f"{label}, streamed", patch, way, part("channel", key, "stream"))
    elif context.full:
        setting = _setting(context, patch, SETTINGS[turn % len(SETTINGS)])
        members = ", ".join(
            f"{name} {dumps(value)}" for name, value in setting.items() if value is not MISSING and name not in patch
        )
        yield from _pair(context, row, f"{label}, with {members}" if members else label, patch, setting)
    else:
        yield from _in_turn(context, row, label, patch, turn)


def _in_turn(
    context: PlanContext, row: Requirement, label: str, patch: Mapping[str, Any], turn: int
) -> Iterator[RequestCase]:
    """The change in the setting of `gate` whose turn it is; alone or streamed where it changes the setting itself."""
    wanted = GATE_SETTINGS[turn % len(GATE_SETTINGS)]
    setting = allowed_members(context, wanted)
    streamed = "stream" in wanted
    if "max_tokens" in patch:  # those share their control with a documented value, sent plain
        yield from _pair(context, row, label, patch, {})
    elif _is_whole(context, patch, wanted):
        yield from _pair(context, row, f"{label}, in a batch{', streamed' * streamed}", patch, setting)
    elif streamed:
        texts = {"prompt": first_level_value(context, "prompt"), **streaming(context)}
        if _is_whole(context, patch, texts):  # the value of `prompt` that is tried alone is the control
            yield from _pair(context, row, f"{label}, in a streamed batch", patch, texts)
        else:
            yield from _pair(context, row, f"{label}, streamed", patch, streaming(context))
    else:
        yield from _pair(context, row, label, patch, {})


def _setting(context: PlanContext, patch: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """As much of a setting as the contract allows, and this target accepts, beside the change.

    In `full` the changed member keeps its own value in the control, so that many changes share one control.
    """
    kept: dict[str, Any] = {}
    alone = context.broken_combinations(context.body(patch))
    related = _related(context, patch) if alone else frozenset()
    for name, value in allowed_members(context, wanted).items():
        with_member = context.body(kept, {name: value}, patch)
        may_change = (context.full or name not in patch) and name not in related
        if may_change and context.broken_combinations(with_member) == alone:
            kept[name] = value
    return kept


def _related(context: PlanContext, patch: Mapping[str, Any]) -> frozenset[str]:
    """The members that some rule relates with the changed ones: beside them, a combination may mean something else."""
    related: set[str] = set()
    for rule in context.contract.combinations:
        compared = {member for member in rule.compare or () if isinstance(member, str)}
        members = {*rule.given, *rule.where, *rule.shape, *compared}
        related |= members if members & patch.keys() else set()
    return frozenset(related)


def _batch(context: PlanContext, patch: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in allowed_members(context, BATCH).items() if context.full or name not in patch}


def _pair(
    context: PlanContext,
    row: Requirement,
    label: str,
    patch: Mapping[str, Any],
    way: Mapping[str, Any],
    *memberships: Membership,
) -> Iterator[RequestCase]:
    key = f"{row.id} {label}"
    controls = [part("refuse", key, "control")]
    if not context.full and row.params.get("keyword") == "coercion":
        # refused, it shows that types are checked; accepted, it says nothing of values that no parser converts
        of_type = f"request.{row.params['parameter']}.type {label}"
        memberships = (*memberships, part("refuse", of_type, LOOK_ALIKE))
        controls.append(part("refuse", of_type, "control"))
    if "max_tokens" in patch:  # keeps the reply short if the limit is ignored
        way = {**way, **context.first_allowed("stop", *_stops(context))}
    yield context.case("base", context.body(way), *controls)
    yield context.case(
        "invalid", context.body(way, patch), part("refuse", key, "probe"), *memberships, breaks=(row.id,)
    )


def _stops(context: PlanContext) -> list[Any]:
    """Stop sequences that the contract surely allows; one of unclear validity where it allows none."""
    stops = [level.value for factor in factors(context) if factor.name == "stop" for level in factor.levels[1:]]
    return [stop for stop in stops if context.validity_alone({"stop": stop}) is Validity.VALID] or [
        likely_stop(context)
    ]


def _combination(context: PlanContext, rule: Combination) -> list[tuple[str, dict[str, Any]]]:
    """The example of a combination, and its variants, where the contract makes them invalid and it alone does."""
    if not context.has(*rule.example):
        return []
    variants = [("example", dict(rule.example)), *_variants(context, rule)]
    broken = [(label, patch) for label, patch in variants if _is_broken(context, rule, patch)]
    # in `gate`, which sends one: behind items that keep the rule, where a server that checks the first overlooks it
    lists = not context.full and all(isinstance(value, list) for value in rule.example.values())
    return broken[::-1] if lists else broken


def _is_broken(context: PlanContext, rule: Combination, patch: Mapping[str, Any]) -> bool:
    body = context.body(patch)
    others = (other for other in context.contract.combinations if other.id != rule.id)
    invalid = context.validity(dumps(body).encode(), body) is Validity.INVALID
    return invalid and (patch == rule.example or not any(combines(context.contract, other, body) for other in others))


def _variants(context: PlanContext, rule: Combination) -> Iterator[tuple[str, dict[str, Any]]]:
    """Of an example with one member: near misses of the words inside it, and its items in another order."""
    if len(rule.example) != 1:
        return
    ((name, example),) = rule.example.items()
    if isinstance(example, Mapping):
        for key in example:
            documented = context.contract.examples.get(name, ())
            known = [value.get(key) for value in documented if isinstance(value, Mapping)]
            if len(example) == 1 and all(isinstance(word, str) for word in known) and example[key] not in known:
                yield from ((label, {name: {key: word}}) for label, word in near_misses(known))
                yield "absent", {name: {}}
    elif isinstance(example, list) and len(example) > 1:
        first, last = example[0], example[-1]
        for label, items in (("first", [last, first, first]), ("in the middle", [first, last, first]),
                             ("last", [first, first, last])):  # fmt: skip
            yield f"the odd item {label}", {name: items}
    elif isinstance(example, list) and example and isinstance(example[0], list):
        # a server that looks at one item of a list only is caught wherever that item is
        yield "the odd item last", {name: [list(IDS), *example]}
        yield "the odd item in the middle", {name: [list(IDS), *example, list(IDS)]}


def _changes(context: PlanContext, row: Requirement, turn: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Changes of the base request that break a row, with labels."""
    path, keyword = str(row.params.get("parameter", "")), str(row.params.get("keyword", ""))
    name = top(path)
    if context.has(name):
        yield from ((label, {name: value}) for label, value in _values(context, path, keyword, turn))


def _values(context: PlanContext, path: str, keyword: str, turn: int) -> Iterator[Labelled]:
    limit = context.contract.limit(path if keyword[:4] in {"mini", "maxi"} else f"{path.removesuffix('[]')}[]")
    match keyword:
        case "required":
            yield "absent", MISSING
        case "nullable":
            yield "null", None
        case "enum":
            allowed = [word for branch in branches(context.contract.parameters[path].schema) for word in branch["enum"]]
            yield from near_misses(allowed)
        case "type" | "coercion":
            classes = list(_classes(context, path, keyword))
            alike = [(input_class.name, input_class.value) for input_class in classes if input_class.look_alike]
            other = [(input_class.name, input_class.value) for input_class in classes if not input_class.look_alike]
            # what a lenient parser lets through comes first where there is room for few
            yield from (
                (*_rotated(alike, turn), *_rotated(other, turn))
                if not context.full
                else _rotated([*alike, *other], turn)
            )
        case "minimum" | "maximum" | "min-items" | "max-items" if limit is not None:
            yield from _outside(context, limit, keyword, turn)


def _rotated(labelled: tuple[Labelled, ...] | list[Labelled], turn: int) -> list[Labelled]:
    start = turn % max(len(labelled), 1)
    return [*labelled[start:], *labelled[:start]]


def _outside(context: PlanContext, limit: Limit, keyword: str, turn: int) -> Iterator[Labelled]:
    """Just outside of a range, and far outside: by a thousand, or as numbers that overflow."""
    near, *others = [(format_bound(value), shaped(limit.parameter, value)) for value in beyond(context, limit, keyword)]
    valid = inside(limit, (1, 0)) if limit.parameter.endswith(".*") else None
    if valid is not None:  # in two places, instead of far outside: values of a map are compared as others are
        (wrong,) = near[1].values()
        yield f"{near[0]}, last of two", entries([valid, wrong])
        yield f"{near[0]}, first of two", entries([wrong, valid])
        return
    yield near
    if limit.parameter.endswith("[]"):
        yield from others
        return
    far = [(name, shaped(limit.parameter, value)) for name, value in EXTREMES if (value > 0) is (keyword == "maximum")]
    yield from _rotated([*far, others.pop()], turn)[:1]
    yield from others


def _classes(context: PlanContext, path: str, keyword: str) -> Iterator[InputClass]:
    """The classes that break the type of an input: look-alikes for the row on coercion, where it has one, or all."""
    schema = inputs(context.contract)[path]
    split = f"request.{path}.coercion" in context.rows
    for input_class in invalid_classes(context.contract, path, schema):
        if not split or input_class.look_alike is (keyword == "coercion"):
            yield input_class


def _breaks_one_rule(context: PlanContext, patch: Mapping[str, Any]) -> bool:
    """Whether the change alone makes the base request invalid, and not a combination with other members."""
    body = context.body(USAGE.patch if "stream_options" in patch else {}, patch)
    return context.validity(dumps(body).encode(), body) is Validity.INVALID and not context.clashes(body)


__all__ = ["breaking_classes", "invalid_requests", "is_oversized", "oversized_counts", "types_in_doubt"]
