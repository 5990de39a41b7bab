"""Tasks in the format of Harbor: made by an export, made by hand, and run without a container."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.export.harbor.tasks import export_tasks
from pytest_tfgrpo.export.harbor.written_scenarios import WrittenScenario, written_scenarios
from pytest_tfgrpo.sandbox.archives import unpack
from pytest_tfgrpo.suite.imports.formats import read_files, write_scenarios
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.tables import TableColumns
from support.fixes import BASE, FAIL_TO_PASS, HIDDEN, PASS_TO_PASS, SOLVED, archive

MINE = {"app", "logs", "solution", "tests", "tmp", "proc", "dev", "sys"}
FOREIGN = {
    "instruction.md": "Make `double` return twice its argument.\n",
    "task.toml": (
        'schema_version = "1.4"\n[metadata]\ntags = ["sums"]\ndifficulty = "easy"\n'
        "[verifier]\ntimeout_sec = 90.0\n[agent]\ntimeout_sec = 300.0\n"
    ),
    "environment/Dockerfile": (
        "FROM python:3.12-slim\n# what the tests need\nRUN pip install pytest==8.4.1 && \\\n"
        "    rm -rf /var/lib/apt/lists/*\nWORKDIR /app\nCOPY src/ ./src/\nCOPY README.md /app\n"
    ),
    "environment/src/sums.py": "def double(n):\n    return n\n",
    "environment/README.md": "Sums.\n",
    "tests/test.sh": (
        "#!/bin/bash\nmkdir -p /logs/verifier\n"
        "if uvx --with pytest==8.4.1 pytest --ctrf /logs/verifier/ctrf.json /tests/test_sums.py -rA; then\n"
        "  echo 1 > /logs/verifier/reward.txt\nelse\n  echo 0 > /logs/verifier/reward.txt\nfi\n"
    ),
    "tests/test_sums.py": (
        "import sys\n\nsys.path.insert(0, 'src')\n\n\ndef test_double():\n"
        "    from sums import double\n\n    assert double(4) == 8\n\n\n"
        "class TestMore:\n    def test_nothing(self):\n        from sums import double\n\n"
        "        assert double(0) == 0\n"
    ),
    "solution/solve.sh": "#!/bin/bash\nsed -i 's/return n/return 2 * n/' src/sums.py\n",
}
"""A task as somebody else may write it, by file."""


def write_task(folder: Path, files: Mapping[str, str | None]) -> Path:
    """Write a task of somebody else's; `files` replace those of FOREIGN, and None leaves one out."""
    for name, text in {**FOREIGN, **files}.items():
        if text is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder


def read_tasks(*folders: Path) -> Imported:
    """Return what tasks become."""
    return read_files("harbor", folders, columns=TableColumns(), expect=None)


def import_tasks(into: Path, *folders: Path) -> Imported:
    """Write the scenarios of tasks into a folder; return what they became."""
    found = read_tasks(*folders)
    write_scenarios(found, into, "tasks", force=False)
    return found


def attempt(task: Path, folder: Path, script: str) -> tuple[str | None, str]:
    """Return the reward, None where none was written, and the output, after `script` worked in ``/app``.

    The paths of a container are bound in a sandbox, `folder` holds what is written.
    """
    for name in ("app", "logs"):
        (folder / name).mkdir(parents=True)
    unpack(task / "environment" / "workspace.tar.gz", folder / "app")
    binds = [("--bind", folder / "app", "/app"), ("--ro-bind", task / "solution", "/solution")]
    _contained(binds, script)
    binds = [
        ("--bind", folder / "app", "/app"),
        ("--bind", folder / "logs", "/logs"),
        ("--ro-bind", task / "tests", "/tests"),
    ]
    output = _contained(binds, "/tests/test.sh")
    reward = folder / "logs" / "verifier" / "reward.txt"
    return (reward.read_text() if reward.exists() else None), output


def _contained(binds: list[tuple[str, Path, str]], script: str) -> str:
    words = ["bwrap", "--unshare-all", "--die-with-parent", "--tmpfs", "/", "--chdir", "/app"]
    for place in Path("/").iterdir():
        if place.name in MINE:
            continue
        if place.is_symlink():
            words += ["--symlink", str(place.readlink()), str(place)]
        elif place.is_dir():
            words += ["--ro-bind", str(place), str(place)]
    words += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]
    words += ["--ro-bind", sys.prefix, sys.prefix]  # it may lie in the folder for temporary files
    for flag, source, target in binds:
        if source.exists():
            words += [flag, str(source), target]
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    words += ["--clearenv", "--setenv", "PATH", path, "--setenv", "HOME", "/tmp", "bash", "-c", script]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.stdout


def write_suite(folder: Path, name: str = "one", /, *, check: Mapping[str, Any] = {}, **fields: Any) -> Path:
    """Write a suite of one fix; `fields` are those of its scenario, where None leaves one out."""
    base, hidden = f"archives/{name}.base.tar.gz", f"archives/{name}.hidden.tar.gz"
    files = {base: archive(BASE), hidden: archive(HIDDEN)}
    files[f"references/{name}.tar.gz"] = archive({"shop/cart.py": SOLVED})
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    data: dict[str, Any] = {
        "id": name,
        "prompt": "The total of a cart is always 0.",
        "workspace": {"archive": base, "sha256": stamp_bytes(files[base])},
        "checks": [
            {
                "kind": "tests",
                "runner": "pytest",
                "hidden": hidden,
                "fail_to_pass": list(FAIL_TO_PASS),
                "pass_to_pass": list(PASS_TO_PASS),
                **check,
            }
        ],
        **fields,
    }
    data = {key: value for key, value in data.items() if value is not None}
    (folder / f"{name}.scenario.json").write_text(json.dumps(data))
    return folder


def exported(suite: Path, into: Path, *, force: bool = False) -> list[str]:
    """Export a suite; return what became of it, without the last line, which is always there."""
    *lines, last = export_tasks(suite, into, force=force)
    assert last.startswith("no container was built or run: ")
    return lines


def scenarios_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the scenarios of a folder's files as they are written, by id."""
    found = (one for one in written_scenarios(folder) if isinstance(one, WrittenScenario))
    return {one.scenario.id: dict(one.data) for one in found}


def other_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a suite that are no scenario files, by name."""
    paths = (path for path in folder.rglob("*") if path.is_file() and ".scenario" not in path.name)
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}
