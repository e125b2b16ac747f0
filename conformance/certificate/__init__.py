"""A verdict that a third party can check: planned beforehand, bound to every byte exchanged, signed, re-derived.

    plan --lock ──▶ plan.lock ──run──▶ bundle ──certify──▶ certificate.json ──verify──▶ reasons, or none

Formats: in-toto Statement v1 with the test-result v0.1 predicate, in a DSSE envelope signed with Ed25519.
"""
