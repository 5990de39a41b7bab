"""Start pytest on one empty test with the plugin and without it, in turns.

    python benchmarks/plugin_load.py [ROUNDS]

The peer is the same pytest; other plugins are off in both. The plugin is named by its module, since the
search for entry points is pytest's own. Processor time is less noisy than wall time; both are told.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]


class Cost(NamedTuple):
    """What one process took, in milliseconds."""

    wall_ms: float
    cpu_ms: float


def start(folder: Path, *args: str) -> Cost:
    """Run pytest in `folder` and return what it took."""
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": ""}
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([*PYTEST, *args], cwd=folder, env=environ, stdout=subprocess.DEVNULL, check=True)
    wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall_s * 1000, cpu_s * 1000)


def main(rounds: int) -> None:
    """Print medians and the median of the paired differences."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\n")
        (folder / "test_nothing.py").write_text("def test_nothing(): pass\n")
        start(folder), start(folder, "-p", "pytest_tfgrpo.plugin")
        pairs = [(start(folder), start(folder, "-p", "pytest_tfgrpo.plugin")) for _ in range(rounds)]
    for field, label in (("wall_ms", "wall"), ("cpu_ms", "processor")):
        without = [getattr(peer, field) for peer, _ in pairs]
        extra = [getattr(ours, field) - getattr(peer, field) for peer, ours in pairs]
        low, middle, high = statistics.quantiles(extra, n=4)
        print(f"{label:10} pytest {statistics.median(without):6.1f} ms")
        print(f"{label:10} plugin {middle:+6.1f} ms   quartiles {low:+.1f} to {high:+.1f}   bar: <= 5 ms")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30)
