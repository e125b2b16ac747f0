"""`conformance serve`: the reference provider on a port, conforming or with faults."""

from __future__ import annotations

from typing import Any

import click

from conformance.cli.options import options
from conformance.cli.printing import say
from conformance.config.settings import SettingsError


@click.command("serve")
@click.argument("provider")
@click.option("--fault", "faults", multiple=True, metavar="NAME", help="Serve with this fault; --faults lists them.")
@click.option("--faults", "listing", is_flag=True, help="List the faults that apply to the provider.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True)
@click.option("--key", help="Require this API key. [none]")
@click.option("--model", "model", default="reference", show_default=True, help="The name of the model.")
@options("specs")
def serve_command(
    provider: str,
    faults: tuple[str, ...],
    listing: bool,
    host: str,
    port: int,
    key: str | None,
    model: str,
    **given: Any,
) -> int:
    """Serve a provider that keeps the contract of PROVIDER, or breaks it with --fault, until Ctrl-C."""
    from conformance.reference import serve_forever
    from conformance.run import launch
    from conformance.run.launch import load_contract
    from conformance.selftest.altered_reference import altered_reference
    from conformance.selftest.faults import FAULTS

    contract = load_contract(launch.resolve_settings(provider, given))
    if listing:
        for fault in FAULTS.values():
            if fault.applies(contract):
                say(f"{fault.name:<48}  {fault.says}")
        return 0
    for name in faults:
        if name not in FAULTS:
            raise SettingsError(f"there is no fault {name!r}; `conformance serve {provider} --faults` lists them")
        if not FAULTS[name].applies(contract):
            raise SettingsError(
                f"the fault {name} does not apply to {provider}'s contract; --faults lists those that do"
            )
    reference = altered_reference(contract, key=key, faults=tuple(FAULTS[name] for name in faults), models=(model,))
    try:
        serve_forever(reference, host, port, started=lambda url: _started(url, provider, model))
    except OSError as error:
        raise SettingsError(f"{host}:{port}: {error.strerror or error}; choose another --host or --port") from None
    return 0


def _started(url: str, provider: str, model: str) -> None:
    say(f"{provider} at {url} (model {model}); judge it with:")
    say(f"  conformance run {provider} --base-url {url} --model {model}")
