"""The pytest suite: a contract's requirements in, one test outcome for each of them out.

`pytest --pyargs conformance.suite -p conformance.plugin --provider NAME` runs it.
"""
