"""What tests of checks share: the findings of one check on one subject, and what they amount to."""

from conformance.judge.catalogue import CheckContext, load
from conformance.judge.fixtures import choice, completion, contract, logprobs, plain, usage
from conformance.model import Inconclusive, Satisfied, Violation

CHECKS = load()
COLD = {"temperature": 0}
CAT = "\U0001f431"


def findings(check, subject, under=None, **params):
    """All findings of a check, named, on an exchange or a group, under the example contract unless told otherwise."""
    return list(CHECKS[check].function(subject, CheckContext(under or contract(), params)))


def kinds(check, subject, **params):
    return [type(finding) for finding in findings(check, subject, **params)]


def breaks(check, subject, **params):
    """Whether some finding is a violation."""
    return Violation in kinds(check, subject, **params)


def holds(check, subject, **params):
    """Whether there are findings, and all are satisfied."""
    return set(kinds(check, subject, **params)) == {Satisfied}


def doubts(check, subject, **params):
    """Whether some finding is inconclusive, and every other one is satisfied."""
    return set(kinds(check, subject, **params)) - {Satisfied} == {Inconclusive}


def scored(tokens, text=None, request=None, *, finish="length", start=0, counts=None, **lists):
    """A reply whose log probabilities have these tokens."""
    whole = {**logprobs(tokens, start=start), **lists}
    body = completion(choice("".join(tokens) if text is None else text, finish=finish, logprobs=whole))
    return plain({**body, **({"usage": usage(*counts)} if counts else {})}, {"logprobs": 1, **(request or {})})
