"""What the user configured.

In: flags, environment variables, conformance.toml, waiver files.
Out: `Settings` for each chosen target and its `Waiver`s, or a SettingsError that says in one line what is wrong.
Never imports run, report, certificate or cli.
"""
