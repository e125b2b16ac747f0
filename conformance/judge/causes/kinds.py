"""The kinds of causes: how each is named, how much it harms a client, and what it means for one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final


class Harm(IntEnum):
    """What a client loses, the worst first: the order in which causes are shown."""

    NO_TEXT = 0
    WRONG_TEXT = 1
    WRONG_END = 2
    WRONG_COUNT = 3
    MISSING_MEMBER = 4
    ACCESS = 5
    LENIENCY = 6
    WORDING = 7


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of cause. `name` may hold {subject}, a parameter or members, and {where}, the setting it shows in."""

    name: str
    harm: Harm
    means: str


KINDS: Final = {
    "not-streamed": Kind("streaming is not offered", Harm.NO_TEXT, "a client that streams gets no text"),
    "no-answer": Kind("some requests get no answer{where}", Harm.NO_TEXT, "a client waits in vain"),
    "server-error": Kind(
        "valid requests are answered with HTTP {subject}{where}",
        Harm.NO_TEXT,
        "such a request never succeeds, however often a client retries it",
    ),
    "cut": Kind("replies end early{where}", Harm.NO_TEXT, "the text is lost from some point on, or never ends"),
    "cut-beside-others": Kind(
        "replies are cut while other requests run", Harm.NO_TEXT, "under load, clients get parts of texts"
    ),
    "refused": Kind(
        "{subject} is refused{where}", Harm.NO_TEXT, "a client that uses what the document allows gets no text"
    ),
    "value-refused": Kind(
        "documented values of {subject} are refused",
        Harm.NO_TEXT,
        "a client that uses what the document allows gets no text",
    ),
    "null-refused": Kind(
        "null is refused for {subject}{where}",
        Harm.NO_TEXT,
        "clients that send every member, null where it is unset, get no text",
    ),
    "form-refused": Kind(
        "valid forms of a request are refused: {subject}", Harm.NO_TEXT, "clients that write requests so get no text"
    ),
    "together-refused": Kind(
        "documented values are refused{where}", Harm.NO_TEXT, "a client that uses what the document allows gets no text"
    ),
    "unanswered": Kind(
        "valid requests are not answered as promised{where}", Harm.NO_TEXT, "a client gets no text that it can use"
    ),
    "framing": Kind(
        "streams are not framed as promised{where}", Harm.WRONG_TEXT, "clients lose text, fail, or wait for an end"
    ),
    "same-body": Kind("the same body whatever is asked", Harm.WRONG_TEXT, "no request gets an answer of its own"),
    "mixed": Kind(
        "replies to simultaneous requests are mixed up", Harm.WRONG_TEXT, "clients get texts that were meant for others"
    ),
    "no-effect": Kind(
        "{subject} has no effect{where}", Harm.WRONG_TEXT, "what the caller asks for is accepted and ignored"
    ),
    "misapplied": Kind(
        "{subject} does not work as promised{where}", Harm.WRONG_TEXT, "the caller gets a text that was not asked for"
    ),
    "choices": Kind(
        "choices are missing or misnumbered{where}", Harm.WRONG_TEXT, "texts are lost, or taken for other texts"
    ),
    "text": Kind("the text is wrong{where}", Harm.WRONG_TEXT, "text is lost, added or changed"),
    "limit": Kind(
        "`max_tokens` and the length of the reply disagree{where}",
        Harm.WRONG_TEXT,
        "texts are longer or shorter than was asked and paid for",
    ),
    "finish": Kind(
        "finish reasons are wrong{where}", Harm.WRONG_END, "a client cannot tell a whole text from one that was cut"
    ),
    "counts": Kind("token counts are wrong{where}", Harm.WRONG_COUNT, "bills and budgets are wrong"),
    "no-usage": Kind("token counts are missing{where}", Harm.WRONG_COUNT, "a client does not learn what it has used"),
    "usage-chunk": Kind(
        "streams do not report usage as promised{where}",
        Harm.WRONG_COUNT,
        "a client misses the token counts, counts twice, or takes them for text",
    ),
    "logprobs": Kind(
        "log probabilities are wrong{where}", Harm.WRONG_COUNT, "scores that are computed from them are wrong"
    ),
    "member": Kind("{subject}{where}", Harm.MISSING_MEMBER, "clients that read it by the document fail"),
    "identity": Kind(
        "ids or times are wrong{where}", Harm.MISSING_MEMBER, "replies cannot be distinguished, found again or ordered"
    ),
    "error-as-success": Kind(
        "errors are sent with HTTP 200{where}", Harm.MISSING_MEMBER, "a client takes an error for a completion"
    ),
    "no-authentication": Kind("no authentication", Harm.ACCESS, "anyone who reaches the server can use it"),
    "no-key": Kind("requests without a key are accepted", Harm.ACCESS, "anyone who reaches the server can use it"),
    "credential-accepted": Kind(
        "wrong credentials are accepted", Harm.ACCESS, "some who have no key can use the server"
    ),
    "credential-refused": Kind(
        "valid credentials are refused", Harm.ACCESS, "some clients with a key cannot use the server"
    ),
    "credential-status": Kind(
        "wrong credentials are answered with another status",
        Harm.ACCESS,
        "a client does not learn that its key is the problem",
    ),
    "validation-5xx": Kind(
        "validation errors are answered with HTTP {subject}{where}",
        Harm.LENIENCY,
        "clients retry a request that can never succeed, and do not learn what is wrong with it",
    ),
    "adversarial-5xx": Kind(
        "adversarial requests are answered with HTTP {subject}",
        Harm.LENIENCY,
        "one caller's request makes the server fail, instead of being refused",
    ),
    "unvalidated": Kind(
        "{subject} not validated{where}", Harm.LENIENCY, "a caller's mistake shows in results or bills, not at once"
    ),
    "coerced": Kind(
        "{subject} converted from other JSON types{where}",
        Harm.LENIENCY,
        "what works here fails on other servers, and a mistake may pass as another value",
    ),
    "malformed": Kind("malformed requests are accepted", Harm.LENIENCY, "a broken client looks as if it worked"),
    "wrong-status": Kind(
        "refusals have an undocumented status", Harm.LENIENCY, "clients handle the refusal as something else"
    ),
    "errors": Kind(
        "error replies are not as promised{where}", Harm.WORDING, "clients cannot show or handle what went wrong"
    ),
    "headers": Kind("header fields are not as promised{where}", Harm.WORDING, "caches and parsers may misread replies"),
}
