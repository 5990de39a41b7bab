"""The command ``tfgrpo loop tensorzero``: what is served, for TensorZero's gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.loop.open_loop import existing_bus
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.serving.foreign.tensorzero import CONFIG, gateway_files, write_gateway_files
from pytest_tfgrpo.production.serving.version_files import load_version
from pytest_tfgrpo.production.training.versions.artifacts import open_artifacts
from pytest_tfgrpo.production.training.versions.policies import Policies

if TYPE_CHECKING:
    from pytest_tfgrpo.production.serving.served_version import ServedVersion


def tensorzero(arguments: Arguments) -> Iterator[str]:
    """Write what is served as variants for the gateway of TensorZero.

    Its gateway reads them when it starts. Raises BusError, SettingError and StoreError.
    """
    with existing_bus(arguments.config) as (config, bus):
        policies = Policies(bus, open_artifacts(config.store))
        serving = Deployments(bus).serving()
        versions = [load_version(policies, name) for name in serving.versions]
    texts = {one.name: _texts(one, arguments.domain) for one in versions}
    files = gateway_files(serving, texts, arguments.function, arguments.model)
    changed = write_gateway_files(arguments.folder, files)
    yield f"{'wrote' if changed else 'unchanged'}  {arguments.folder / CONFIG}: {', '.join(texts)}"


def _texts(version: ServedVersion, domain: str) -> tuple[str, ...]:
    found = version.fixed_prompt(domain)
    if found is None:
        known = sorted({pack.domain for pack in version.packs} | {one.domain for one in version.lessons})
        raise SettingError(
            f"version {version.name} has texts for {', '.join(known)}, and none for --domain {domain!r}; "
            "name one of these with --domain"
        )
    return found.parts
