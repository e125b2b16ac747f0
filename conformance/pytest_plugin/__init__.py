"""The pytest plugin: settings in, one test item for each requirement out, whose outcomes are the verdicts.

In: the options of `conformance run`, as pytest options. Out: pytest reports, an exit status, and pytest-html's page
with our report on it. The run itself is made by `conformance.run`; users load the plugin as `-p conformance.plugin`.
"""
