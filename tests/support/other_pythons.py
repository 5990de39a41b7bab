"""Other Pythons of this machine, with pytest."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

from pytest_tfgrpo.harvest.recipe.machine_pythons import find_interpreters
from pytest_tfgrpo.sandbox.programs.environments import BuiltEnvironment
from support.tools import missing_tool

PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
"""What pytest needs, all of it the same for each Python."""


def environment_of(version: str, folder: Path) -> BuiltEnvironment:
    """Return an environment in a folder that has pytest and nothing else; skip without this Python."""
    found = find_interpreters(os.environ.get("PATH", os.defpath)).get(version)
    if found is None:
        missing_tool(f"python{version}")
    subprocess.run([found, "-I", "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    linked = list[Path]()
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin) if spec.submodule_search_locations is None else Path(spec.origin).parent
        (packages / source.name).symlink_to(source)
        linked.append(source)
    home = Path(os.path.realpath(found)).parent.parent
    return BuiltEnvironment(
        stamp="0" * 64,
        folder=folder,
        python=folder / "bin" / "python",
        programs=(folder / "bin",),
        imports=(),
        variables={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        links={},
        readable=(folder, home, *linked),
    )
