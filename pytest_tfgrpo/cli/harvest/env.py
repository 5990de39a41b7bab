"""The command ``tfgrpo harvest env``: the environments of a suite on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.harvest.sandbox_choice import require_sandbox
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.harvest.environment.package_tools import BuildProblem
from pytest_tfgrpo.harvest.job.tools import open_builder
from pytest_tfgrpo.harvest.suite.suite_files import ENVIRONMENTS
from pytest_tfgrpo.sandbox.programs.environments import read_environment


def env(arguments: Arguments) -> Iterator[str]:
    """Build the environments of a harvested suite on this machine."""
    files = sorted((Path(arguments.suite) / ENVIRONMENTS).glob("*.json"))
    if not files:
        if not any(Path(arguments.suite).glob("*.scenario.yaml")):
            raise SettingError(f"{arguments.suite} holds no scenario; name the folder of a suite")
        yield f"{arguments.suite} needs no environment"
        return
    require_sandbox(arguments.check_sandbox)
    builder, lost = open_builder(os.environ, arguments.check_sandbox), 0
    for file in files:
        environment = read_environment(file)
        what = f"Python {environment.python}" if environment.python else "no Python"
        try:
            builder.build(environment)
        except BuildProblem as problem:
            lost += 1
            yield f"failed  {file.stem[:12]}  {what}: {problem}"
        else:
            yield f"ready   {file.stem[:12]}  {what}, {plural(len(environment.lock), 'package')}"
    if lost:
        raise StoreError(f"{lost} of {plural(len(files), 'environment')} could not be built")
