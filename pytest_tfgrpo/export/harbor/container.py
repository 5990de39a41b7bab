"""The container of a task: a Dockerfile with the interpreter, the packages and the project of a scenario."""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Iterator
from importlib.metadata import version

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.sandbox.programs.environments import Environment
from pytest_tfgrpo.suite.imports.harbor.task_form import DOCKERFILE, ENVIRONMENT, WORKDIR, WORKSPACE

REQUIREMENTS = "requirements.txt"
DISTRIBUTIONS = "/opt/distributions"
"""Where the container has the metadata of the project's own packages."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Container:
    """The files that a container is built of, beside the archive of its workspace."""

    files: dict[str, bytes]
    """By their path in the task."""
    lost: tuple[str, ...]
    """What of the environment the container has not."""


def container_of(environment: Environment | None) -> Container:
    """Return the container of an environment; without one it has this interpreter's version, and pytest's."""
    if environment is None:
        major, minor, _ = platform.python_version_tuple()
        dockerfile = "\n".join(_dockerfile(f"{major}.{minor}", f"pytest=={version('pytest')}", {}, ()))
        return Container(files={DOCKERFILE: f"{dockerfile}\n".encode()}, lost=())
    fit = {name: value for name, value in environment.variables.items() if value.isprintable()}
    files = dict(_metadata(environment))
    paths = [f"{WORKDIR}/{name}" if name != "." else WORKDIR for name in environment.imports]
    paths += [DISTRIBUTIONS] * bool(files)
    packages = f"--no-deps --require-hashes -r /opt/{REQUIREMENTS}" if environment.lock else ""
    assert environment.python is not None
    rows = _dockerfile(environment.python, packages, fit, tuple(paths), copies_metadata=bool(files))
    files[DOCKERFILE] = ("\n".join(rows) + "\n").encode()
    if environment.lock:
        files[f"{ENVIRONMENT}/{REQUIREMENTS}"] = ("\n".join(environment.lock) + "\n").encode()
    lost = [f"the variable `{name}`, whose value a Dockerfile cannot hold" for name in environment.variables
            if name not in fit]  # fmt: skip
    if any("[console_scripts]" in text for text in environment.entry_points.values()):
        lost.append("programs of the project's own packages")
    return Container(files=files, lost=tuple(lost))


def _dockerfile(
    python: str,
    packages: str,
    variables: dict[str, str],
    paths: tuple[str, ...],
    *,
    copies_metadata: bool = False,
) -> Iterator[str]:
    yield f"FROM python:{python}-slim"
    yield f"WORKDIR {WORKDIR}"
    if packages:
        if REQUIREMENTS in packages:
            yield f"COPY {REQUIREMENTS} /opt/{REQUIREMENTS}"
        yield f"RUN python -m pip install --no-cache-dir {packages}"
    if copies_metadata:
        yield f"COPY distributions/ {DISTRIBUTIONS}/"
    for name, value in variables.items():
        yield f"ENV {name}={_quoted(value)}"
    if paths:
        yield f"ENV PYTHONPATH={_quoted(':'.join(paths))}"
    yield f"ADD {WORKSPACE.rpartition('/')[2]} {WORKDIR}/"


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("$", "\\$")


def _metadata(environment: Environment) -> Iterator[tuple[str, bytes]]:
    """Yield the metadata of the project's own packages, so that ``importlib.metadata`` finds them."""
    for name, number in environment.distributions.items():
        folder = f"{re.sub(r'[-.]+', '_', name)}-{number.replace('-', '_')}.dist-info"
        start = f"{ENVIRONMENT}/distributions/{folder}"
        yield f"{start}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {number}\n".encode()
        if text := environment.entry_points.get(name):
            yield f"{start}/entry_points.txt", text.encode()
