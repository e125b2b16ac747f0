"""The prompt is not echoed, or the echo is incomplete, changed, or changes the completion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from conformance.reference.alterations import Call, Stage
from conformance.reference.generation_parameters import GenerationParameters, Prompt
from conformance.reference.responses import Text
from conformance.selftest.edits import (
    Json,
    choices,
    prompt_of,
    sent,
    several,
    several_prompts,
    with_other_text,
    with_text,
)
from conformance.selftest.fault import fault

NEEDS = ("echo",)
MISSING = (
    "echo_begins_with_prompt", "echo_adds_only_the_prompt", "echo_of_zero_tokens", "logprobs_cover_echo",
    "tokens_join_to_text", "text_offsets_follow_tokens", "default_is_explicit", "logprobs_count_the_tokens",
    "logprobs_are_returned", "max_tokens_zero", "first_echo_logprob_is_null_or_number", "length_means_the_limit",
)  # fmt: skip


@fault(
    Stage.PARAMETERS,
    "echo_begins_with_prompt",
    needs=NEEDS,
    when=("plain", "streamed"),
    also=MISSING,
    imitates="echo was ignored.",
)
def echo_is_ignored(params: GenerationParameters, call: Call) -> GenerationParameters:
    """The prompt is not echoed."""
    return replace(params, echo=False)


@fault(
    Stage.PARAMETERS,
    "echo_begins_with_prompt",
    needs=("echo", "logprobs"),
    also=(*MISSING, "logprobs_change_nothing"),
)
def echo_is_ignored_beside_logprobs(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With log probabilities, the prompt is not echoed."""
    return replace(params, echo=False) if params.logprobs is not None else params


@fault(
    Stage.PARAMETERS,
    "echo_begins_with_prompt",
    needs=("echo", "n"),
    also=(*MISSING, "choices_agree_when_greedy"),
)
def echo_is_ignored_beside_n(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With n, the prompt is not echoed."""
    return replace(params, echo=False) if params.n > 1 else params


@fault(
    Stage.TEXTS,
    "echo_begins_with_prompt",
    needs=NEEDS,
    also=(*MISSING, "choices_agree_when_greedy", "batch_is_singles", "twin_text_agrees", "batch_order_holds"),
    only=lambda call: call.params.echo and several(call),
)
def first_choice_alone_echoes(texts: list[Text], call: Call) -> list[Text]:
    """With several choices, only the first begins with its prompt."""
    return [text if text.index == 0 else replace(text, prompt=Prompt("", ()), echoed=()) for text in texts]


@fault(
    Stage.TEXTS,
    "echo_begins_with_prompt",
    needs=NEEDS,
    also=(*MISSING, "batch_is_singles", "batch_order_holds"),
    only=lambda call: call.params.echo and several_prompts(call),
)
def first_prompt_is_echoed_for_all(texts: list[Text], call: Call) -> list[Text]:
    """With several prompts, each choice begins with the first of them."""
    return [replace(text, prompt=texts[0].prompt, echoed=texts[0].echoed) for text in texts]


def _rewrite_beginnings(documents: list[Json], call: Call, change: Callable[[str, int], str]) -> list[Json]:
    """The documents with the first text of each choice changed; `change` gets the text and the prompt's length."""
    begun: set[int] = set()
    for choice in choices(documents):
        if choice["index"] not in begun:
            begun.add(choice["index"])
            choice["text"] = change(choice["text"], len(prompt_of(call, choice).text))
    return documents


@fault(Stage.REPLY, "echo_begins_with_prompt", needs=NEEDS, only=lambda call: call.params.echo, also=MISSING)
def echo_is_in_capitals(documents: list[Json], call: Call) -> list[Json]:
    """The echoed prompt comes back in reverse, and with the other case."""
    return _rewrite_beginnings(documents, call, lambda text, length: text[:length].swapcase()[::-1] + text[length:])


@fault(
    Stage.REPLY,
    "echo_adds_only_the_prompt",
    needs=NEEDS,
    when=("plain", "streamed"),
    only=lambda call: call.params.echo and call.params.max_tokens != 0,
    also=("bias_forces", "stop_cuts_earliest", *MISSING, "json_is_valid"),
)
def echo_is_followed_by_a_line_break(documents: list[Json], call: Call) -> list[Json]:
    """The server puts a line break between the echoed prompt and the completion."""
    return _rewrite_beginnings(documents, call, lambda text, length: text[:length] + "\n" + text[length:])


@fault(Stage.PARAMETERS, "echo_adds_only_the_prompt", needs=NEEDS, also=("twin_text_agrees", "default_is_explicit"))
def echo_changes_the_text(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With echo, the completion is another one."""
    return with_other_text(params) if params.echo else params


@fault(
    Stage.PARAMETERS,
    "echo_of_zero_tokens",
    needs=NEEDS,
    also=("completion_tokens_within_limit", "logprobs_count_the_tokens", "length_means_the_limit"),
    only=lambda call: sent(call, "echo") is True,
    fits=lambda contract: contract.binding("echo_of_zero_tokens") is not None,
)
def zero_tokens_after_an_echo_are_one(params: GenerationParameters, call: Call) -> GenerationParameters:
    """With echo, the server generates one token although max_tokens is 0."""
    return replace(params, max_tokens=1) if params.max_tokens == 0 else params


@fault(
    Stage.TEXTS,
    "echo_comes_with_a_completion",
    needs=NEEDS,
    also=(*MISSING, "length_comes_with_text", "twin_text_agrees", "length_means_the_limit", "suffix_is_used"),
    only=lambda call: call.params.echo,
    imitates="With echo, the prompt came in place of the completion.",
)
def echo_replaces_the_completion(texts: list[Text], call: Call) -> list[Text]:
    """With echo, the prompt comes back alone; what was generated is counted all the same."""
    return [with_text(text, "") for text in texts]


@fault(
    Stage.TEXTS,
    "logprobs_count_the_tokens",
    needs=(*NEEDS, "logprobs"),
    also=(*MISSING, "prompt_tokens_match_ids", "batch_is_singles"),
    only=lambda call: call.params.echo,
)
def echo_of_ids_has_a_window(texts: list[Text], call: Call) -> list[Text]:
    """Of a prompt of ids, the last 256 are echoed; all of them are counted."""
    changed = []
    for text in texts:
        if text.prompt.given_as_tokens and len(text.echoed) > 256:
            steps = text.echoed[-256:]
            text = replace(text, echoed=steps, prompt=replace(text.prompt, text="".join(step.text for step in steps)))
        changed.append(text)
    return changed


@fault(
    Stage.TEXTS,
    "echo_adds_only_the_prompt",
    needs=NEEDS,
    also=("batch_is_singles", "tokens_join_to_text", "text_offsets_follow_tokens", "logprobs_count_the_tokens"),
    only=lambda call: call.params.echo,
    imitates="An empty prompt was echoed as the token that stands for it.",
)
def empty_prompt_is_echoed_as_a_token(texts: list[Text], call: Call) -> list[Text]:
    """The echo of an empty prompt is <|endoftext|>."""
    return [
        text if text.prompt.text else replace(text, prompt=replace(text.prompt, text="<|endoftext|>")) for text in texts
    ]
