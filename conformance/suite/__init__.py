"""The pytest suite: `pytest --pyargs conformance.suite -p conformance.plugin --provider NAME`."""
