"""The environment variables of programs in a workspace: those of its environment, by which they find it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment


def with_environment(
    variables: Mapping[str, str], environment: BuiltEnvironment | None, workspace: Path
) -> dict[str, str]:
    """Return `variables` with those of an environment: its programs first on PATH, its folders on PYTHONPATH.

    What PATH and PYTHONPATH had comes after; its other variables replace those of the same name.
    """
    if environment is None:
        return dict(variables)
    first = {
        "PATH": [str(folder) for folder in environment.programs],
        "PYTHONPATH": [os.path.normpath(workspace / folder) for folder in environment.imports],
    }
    found = {**variables, **environment.variables}
    if environment.python is not None:
        found["VIRTUAL_ENV"] = str(environment.python.parent.parent)
    for name, folders in first.items():
        paths = [*folders, *(variables.get(name) or "").split(os.pathsep)]
        if any(paths):
            found[name] = os.pathsep.join(path for path in dict.fromkeys(paths) if path)
    return found
