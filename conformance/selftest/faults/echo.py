"""Echo is ignored, incomplete, or more than an echo."""

from __future__ import annotations

from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_request import GenerationParameters, Prompt
from conformance.reference.responses import Text
from conformance.selftest.edits import Json, choices, several
from conformance.selftest.fault import fault

NEEDS = ("echo",)
GONE = (
    "echo_begins_with_prompt",
    "echo_adds_only_the_prompt",
    "echo_of_zero_tokens",
    "logprobs_cover_echo",
    "tokens_join_to_text",
    "text_offsets_follow_tokens",
    "default_is_explicit",
    "logprobs_count_the_tokens",
    "logprobs_are_returned",
    "max_tokens_zero",
    "first_echo_logprob_is_null_or_number",
)


@fault(
    Stage.WISH,
    "echo_begins_with_prompt",
    needs=NEEDS,
    variants=("plain", "streamed"),
    also=GONE,
    imitates="echo was ignored.",
)
def echo_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The prompt is not echoed."""
    return replace(params, echo=False)


@fault(Stage.WISH, "echo_begins_with_prompt", needs=("echo", "logprobs"), also=(*GONE, "logprobs_change_nothing"))
def echo_is_ignored_beside_logprobs(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With log probabilities, the prompt is not echoed."""
    return replace(params, echo=False) if params.logprobs is not None else params


@fault(Stage.WISH, "echo_begins_with_prompt", needs=("echo", "n"), also=(*GONE, "choices_agree_when_greedy"))
def echo_is_ignored_beside_n(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With n, the prompt is not echoed."""
    return replace(params, echo=False) if params.n > 1 else params


def _mute(text: Text) -> Text:
    return replace(text, prompt=Prompt("", ()), echoed=())


@fault(
    Stage.TEXTS,
    "echo_begins_with_prompt",
    needs=NEEDS,
    also=(*GONE, "choices_agree_when_greedy", "batch_is_singles", "twin_text_agrees", "batch_order_holds"),
    only=lambda call: call.params.echo and several(call),
)
def first_choice_alone_echoes(texts: list[Text], call: Call) -> list[Text]:
    """With several choices, the first alone begins with its prompt."""
    return [text if text.index == 0 else _mute(text) for text in texts]


@fault(
    Stage.TEXTS,
    "echo_begins_with_prompt",
    needs=NEEDS,
    also=(*GONE, "batch_is_singles", "batch_order_holds"),
    only=lambda call: call.params.echo and len(call.params.prompts) > 1,
)
def first_prompt_is_echoed_for_all(texts: list[Text], call: Call) -> list[Text]:
    """With several prompts, each choice begins with the first of them."""
    return [replace(text, prompt=texts[0].prompt, echoed=texts[0].echoed) for text in texts]


@fault(Stage.REPLY, "echo_begins_with_prompt", needs=NEEDS, only=lambda call: call.params.echo, also=GONE)
def echo_is_in_capitals(documents: list[Json], call: Call) -> list[Json]:
    """The echoed prompt is normalised on its way through the tokenizer."""
    told: set[int] = set()
    for choice in choices(documents):
        length = len(call.params.prompts[choice["index"] // call.params.n].text)
        if choice["index"] not in told and length:
            told.add(choice["index"])
            choice["text"] = choice["text"][:length].swapcase()[::-1] + choice["text"][length:]
    return documents


@fault(
    Stage.REPLY,
    "echo_adds_only_the_prompt",
    needs=NEEDS,
    variants=("plain", "streamed"),
    only=lambda call: call.params.echo and call.params.max_tokens != 0,
    also=("bias_forces", "stop_cuts_earliest", *GONE, "json_is_valid"),
)
def echo_is_followed_by_a_line_break(documents: list[Json], call: Call) -> list[Json]:
    """A line break stands between the echoed prompt and the completion."""
    told: set[int] = set()
    for choice in choices(documents):
        length = len(call.params.prompts[choice["index"] // call.params.n].text)
        if choice["index"] not in told:
            told.add(choice["index"])
            choice["text"] = choice["text"][:length] + "\n" + choice["text"][length:]
    return documents


@fault(Stage.WISH, "echo_adds_only_the_prompt", needs=NEEDS, also=("twin_text_agrees", "default_is_explicit"))
def echo_changes_the_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With echo another completion is written."""
    return replace(params, suffix=params.suffix + "\n") if params.echo else params


@fault(
    Stage.WISH,
    "echo_of_zero_tokens",
    needs=NEEDS,
    also=("completion_tokens_within_limit", "logprobs_count_the_tokens", "length_means_the_limit"),
    only=lambda call: isinstance(call.body, dict) and call.body.get("echo") is True,
    fits=lambda contract: contract.binding("echo_of_zero_tokens") is not None,
)
def zero_tokens_after_an_echo_are_one(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With echo, a limit of 0 still writes one token."""
    return replace(params, max_tokens=1) if params.max_tokens == 0 else params
