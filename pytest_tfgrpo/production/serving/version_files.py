"""The files of a version, read to be served."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import from_wire
from pytest_tfgrpo.learning.library.library import load_library
from pytest_tfgrpo.production.deployment.serving import FIRST
from pytest_tfgrpo.production.serving.served_version import ServedVersion
from pytest_tfgrpo.production.training.versions.artifacts import CHECKPOINTS, PACKS
from pytest_tfgrpo.production.training.versions.policies import Policies


def load_version(policies: Policies, name: str) -> ServedVersion:
    """Return a version as its files say; raises StoreError and BusError.

    v1, the agent without lessons, adds nothing: it is what users met before anything was deployed.
    """
    if name == FIRST:
        return ServedVersion(FIRST, (), ())
    policies.read(name)  # says it where the version was removed
    place = f"{policies.place(name)}/{PACKS}"
    data = policies.files.read(f"{CHECKPOINTS}/{name}/{PACKS}")
    with TemporaryDirectory() as temporary:
        policies.save_library(name, file := Path(temporary) / "library.json")
        lessons = load_library(file).experiences
    try:
        return ServedVersion(name, from_wire(tuple[PromptPack, ...], load_json(data or b"")), lessons)
    except ValueError as error:
        why = "it is missing" if data is None else error
        raise StoreError(f"cannot read {place}: {why}; run the job of version {name} again") from error
