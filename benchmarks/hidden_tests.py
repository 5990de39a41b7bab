"""A check of kind ``tests`` against plain pytest on the same files, without plugins on either side.

python benchmarks/hidden_tests.py [ROUNDS]. The check copies what the agent left, isolates the run, adds
canaries and reports test by test; plain pytest starts where the files already lie. All lie in memory.
The two forms of the tests are two runs of pytest, at once: with fewer than two free cores a check takes
twice the time at least.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, pack, unpack
from pytest_tfgrpo.sandbox.workspace import Workspace
from pytest_tfgrpo.scoring.checks.protocol import CheckContext
from pytest_tfgrpo.scoring.checks.registry import KINDS, evaluate
from pytest_tfgrpo.suite.scenario import build_scenario

CASES = (
    ("3 tests", 1, 3, 0.0),
    ("300 tests", 300, 3, 0.0),
    ("3,000 files", 3, 3000, 0.0),
    ("1 s", 10, 3, 1.0),
)
"""Name, tests, source files, seconds that the tests take together."""
BAR = 1.3
SHARED_MEMORY = Path("/dev/shm")


def write_case(folder: Path, tests: int, files: int, work_s: float) -> Callable[[], None]:
    """Write a project and its suite; return the check of it, which has to have full credit."""
    test = "import time, pkg.part0\n\n" + "".join(
        f"def test_{n}():\n    time.sleep({work_s / tests})\n    assert pkg.part0.VALUE == 1\n\n"
        for n in range(tests)
    )
    project = {f"pkg/part{n}.py": "VALUE = 1\n" + "# what it does\n" * 40 for n in range(files)}
    project |= {"pkg/__init__.py": "", "pytest.ini": "[pytest]\n"}
    hidden = {"tests/test_parts.py": test}
    base = _packed(project)
    (folder / "base.tar.gz").write_bytes(base)
    (folder / "hidden.tar.gz").write_bytes(_packed(hidden))
    check = {
        "kind": "tests",
        "runner": "pytest",
        "hidden": "hidden.tar.gz",
        "fail_to_pass": [f"tests/test_parts.py::test_{n}" for n in range(tests)],
    }
    workspace = {"archive": "base.tar.gz", "sha256": stamp_bytes(base)}
    data = {"id": "one", "prompt": "x", "workspace": workspace, "checks": [check]}
    scenario = build_scenario(data, source="one.yaml:1", checker=None, folder=folder)
    assert scenario.workspace is not None
    left, plain = folder / "left", folder / "plain"
    for place in (left, plain):
        place.mkdir()
        unpack(scenario.workspace.path, place)
    (plain / "tests").mkdir()
    (plain / "tests" / "test_parts.py").write_text(test)
    context = CheckContext(
        answer="",
        frames=(),
        workspace=Workspace(left, left=True, archive=scenario.workspace),
        task=scenario.task(),
        sandbox="bwrap",
    )

    def run() -> None:
        (result,) = evaluate(scenario.checks, context, KINDS)
        assert result.credit == 1, result.reason

    return run


def _packed(files: dict[str, str]) -> bytes:
    return pack(ArchiveEntry(name=name, data=text.encode()) for name, text in files.items())


def run_plain(folder: Path) -> None:
    """Run pytest on the project, as a shell would."""
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_parts.py"]
    clean = {
        "PATH": os.environ["PATH"],
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    subprocess.run(argv, cwd=folder / "plain", env=clean, check=True, stdout=subprocess.DEVNULL)


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds of a call."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(rounds: int) -> None:
    """Print medians, and the median of the ratios of pairs."""
    memory = str(SHARED_MEMORY) if SHARED_MEMORY.is_dir() else None
    tempfile.tempdir = memory
    for name, tests, files, work_s in CASES:
        with tempfile.TemporaryDirectory(dir=memory) as place:
            check = write_case(Path(place), tests, files, work_s)
            check()  # the archives are read once for all rollouts
            pairs = [(seconds(check), seconds(lambda at=Path(place): run_plain(at))) for _ in range(rounds)]
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"{name:>12}: check {ours:.2f} s, pytest {theirs:.2f} s: {ratio:.2f} times (bar: {BAR:g})")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
