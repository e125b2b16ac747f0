"""Each promise in each setting: which requirements a set of cases shows while streamed, in a batch, echoed and so on.

A promise that holds for one plain prompt may break in another setting, where a server runs other code. So it is not
enough that a setting was sent: a case counts for a requirement where its check must find an occurrence in that very
reply, and where the case is the one that is judged, not the one that it is compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from conformance.contract.applicability import CheckContext, Scope, expected_of_case
from conformance.contract.bounds import top
from conformance.model import Level, RequestCase, Requirement, Validity
from conformance.model.json_text import MISSING, dumps
from conformance.model.request_view import RequestView
from conformance.plan.context import PlanContext
from conformance.plan.factors import IDS, SECOND_PROMPT, STREAM, USAGE
from conformance.plan.relations import SUFFIX
from conformance.plan.requirement_coverage import RequirementCoverage

TRIED: Final = 12  # cases from which it is concluded whether a promise can show in a setting


@dataclass(frozen=True)
class Setting:
    """What a request has besides the value in question: its name, how it is recognised, and the members it needs."""

    name: str
    holds: Callable[[RequestView], bool]
    patch: Mapping[str, Any]

    def on(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """A body in this setting; a batch keeps its own prompt and gets a second one."""
        changed = {**body, **self.patch}
        if changed.get("prompt") is BATCH:
            own = body.get("prompt")
            is_list = isinstance(own, list) and own and not isinstance(own[0], int)
            other: Any = list(IDS) if isinstance(own, list) else SECOND_PROMPT
            changed["prompt"] = own if is_list else [own, other]
        return {name: value for name, value in changed.items() if value is not MISSING}


BATCH: Final = object()
PLAIN: Final = {"stream": MISSING, "stream_options": MISSING}
SETTINGS: Final = (
    Setting("plain", lambda request: not request.stream, PLAIN),
    Setting("streamed", lambda request: request.stream, STREAM.patch),
    Setting("usage", lambda request: request.include_usage, USAGE.patch),
    Setting("batch", lambda request: len(request.prompts) > 1, {"prompt": BATCH}),
    Setting("n", lambda request: request.n > 1, {"n": 2}),
    Setting("best_of", lambda request: request.best_of > request.n, {"best_of": 3}),
    Setting("echo", lambda request: request.echo, {"echo": True}),
    Setting("logprobs", lambda request: request.logprobs is not None, {"logprobs": 1}),
    Setting("suffix", lambda request: bool(request.get("suffix")), {"suffix": SUFFIX}),
    Setting("ids", lambda request: any(isinstance(prompt, tuple) for prompt in request.prompts), {"prompt": list(IDS)}),
    Setting("1 token", lambda request: request.max_tokens == 1, {"max_tokens": 1}),
    Setting("0 tokens", lambda request: request.max_tokens == 0, {"max_tokens": 0}),
)
# A request that is refused builds no reply, so the settings in which it is sent are those that parse it otherwise.
REFUSALS: Final = frozenset({"plain", "streamed", "batch", "n"})
ALONE: Final = "the value is tried alone; beside others it is judged by the rows on combinations"
DRAWN: Final = "the members of a drawn body are drawn as well"
NOT_A_REPLY: Final = "it is about the server between requests"
# Groups whose requests are what they are, with the reason why they are not sent in every setting.
FIXED: Final[Mapping[str, str]] = {
    "accept": ALONE,
    "observe": ALONE,
    "drawn": DRAWN,
    "drawn-invalid": DRAWN,
    "after": NOT_A_REPLY,
    "overflow": "a limit beyond any context needs no second setting to be refused or lowered",
    "alive": NOT_A_REPLY,
    "burst": NOT_A_REPLY,
    "spelling": "the form of a body is read before its members",
    "tier": ALONE,
    "scored": "a prompt is scored alone and in a batch that is streamed, whatever is generated behind it",
    "best": "likelihoods are compared between single samples and the best of many",
}
BRIEF: Final = frozenset({"1 token", "0 tokens"})
TOO_SHORT: Final = "replies are compared by their texts, which need several tokens"
# Groups whose requests leave out a setting, with the reason.
LEFT_OUT: Final[Mapping[tuple[str, str], str]] = {
    ("twin", "plain"): "streams are compared with plain replies, which count as streams",
    ("channel", "plain"): "refusals of streams are compared with plain ones, which count as streams",
    **{
        (kind, name): "it is read from the request in one place, whatever the reply"
        for kind in ("default", "null", "inert")
        for name in ("best_of", "echo", "suffix", "ids")
    },
    ("arms", "suffix"): "the effect is judged there by narrow sampling, seeds and varying texts",
    ("arms", "ids"): "the effect is judged there by narrow sampling, seeds and varying texts",
    ("arms", "echo"): "the effect is judged there by narrow sampling, seeds and varying texts",
    ("arms", "logprobs"): "the effect is judged there by narrow sampling, seeds and varying texts",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One requirement in one setting: how many cases show it there, or why none does; "" where none has a reason."""

    requirement: str
    setting: str
    cases: int
    reason: str = ""

    @property
    def hole(self) -> bool:
        return not self.cases and not self.reason


def documented_settings(context: PlanContext) -> tuple[Setting, ...]:
    """The settings whose parameters the contract documents."""
    return tuple(setting for setting in SETTINGS if all(name in context.contract.parameters for name in setting.patch))


def setting_coverage(context: PlanContext, cases: Iterable[RequestCase]) -> Iterator[Cell]:
    """Every requirement that some case shows, in every setting."""
    coverage = RequirementCoverage(context.contract, context.checks)
    reader = CheckContext(context.contract)
    settings = documented_settings(context)
    shown: dict[str, list[RequestCase]] = {}
    counts: dict[tuple[str, str], int] = {}
    for case in cases:
        held = [setting.name for setting in settings if setting.holds(reader.request(case))]
        for name in coverage.of(case):
            shown.setdefault(name, []).append(case)
            for label in held:
                counts[name, label] = counts.get((name, label), 0) + 1
    for row in context.contract.requirements:
        if row.level is not Level.MAY and row.id in shown:
            for setting in settings:
                count = counts.get((row.id, setting.name), 0)
                reason = "" if count else _reason(context, row, setting, shown[row.id])
                yield Cell(row.id, setting.name, count, reason)


def _reason(context: PlanContext, row: Requirement, setting: Setting, cases: list[RequestCase]) -> str:
    """Why no case shows a requirement in a setting: what the same cases would be in it; "" where they would show it."""
    group = context.checks[row.check].group
    if group in FIXED:
        return FIXED[group]
    kind = "inert" if row.area == "relations" and group == "never" else group
    if (kind, setting.name) in LEFT_OUT:
        return LEFT_OUT[kind, setting.name]
    if group and group not in {"refuse", "channel"} and setting.name in BRIEF:
        return TOO_SHORT
    if top(str(row.params.get("parameter", ""))) in setting.patch:
        return "the setting is made by the parameter in question"
    if group in {"refuse", "channel"} or context.checks[row.check].scope is Scope.ERROR:
        return _reason_of_refusal(context, row, setting, cases)
    reasons = [_reason_of_case(context, row, setting, case) for case in cases[:: len(cases) // TRIED + 1]]
    return "" if "" in reasons else reasons[0]


def _reason_of_refusal(context: PlanContext, row: Requirement, setting: Setting, cases: list[RequestCase]) -> str:
    if setting.name not in REFUSALS:
        return "a refused request builds no reply that could differ"
    reasons = []
    for case in cases[:: len(cases) // TRIED + 1]:
        if case.method != context.contract.method or case.headers != RequestCase("", b"", "").headers:
            return "the head of the request is refused before its body is read"
        if not isinstance(case.body, Mapping):
            return "the request has no members"
        body = setting.on(case.body)
        broken = context.broken_combinations(body) == context.broken_combinations(case.body)
        reasons.append("" if broken and setting.holds(context.request(body)) else "it would break another rule as well")
    return "" if "" in reasons else reasons[0]


def _reason_of_case(context: PlanContext, row: Requirement, setting: Setting, case: RequestCase) -> str:
    if not isinstance(case.body, Mapping):
        return "the request has no members"
    body = setting.on(case.body)
    standing = context.validity_of(body)
    if standing is Validity.INVALID or context.clashes(body):
        return "the document forbids it beside this, or leaves it open"
    changed = replace(case, content=dumps(body).encode(), validity=standing)
    if not setting.holds(context.request(body)):
        return "the document has no such value"
    if not expected_of_case(row, context.checks[row.check], changed, CheckContext(context.contract, row.params)):
        return "it does not occur there"
    return ""


__all__ = ["SETTINGS", "Cell", "Setting", "documented_settings", "setting_coverage"]
