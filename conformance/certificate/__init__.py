"""Results that a third party can check: planned beforehand, bound to every exchanged byte, signed, judged again.

    plan --lock ──▶ plan.lock ──run──▶ bundle ──certify──▶ certificate.json ──verify──▶ rejections, or none

In: a bundle (plan.lock, recording, results.json), a signing key; for `verify` also trusted keys, revocations, nonces.
Out: certificate.json, its page and badge; or `Rejection`s, each with a documented code.
Formats: in-toto Statement v1 with the test-result v0.1 predicate, in a DSSE envelope signed with Ed25519.
Never imports cli or pytest_plugin, and never opens a network connection.
"""
