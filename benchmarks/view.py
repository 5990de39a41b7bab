"""The page of a run that goes on: first paint and memory of a growing journal.

    python benchmarks/view.py [--rollouts 100000]

The journal of a run of 1,000 scenarios is written, first its header alone, then with all its rollouts; each
time `tfgrpo view` starts anew and Chromium opens its page. Measured are the seconds from the start of the
navigation to the first paint, to the first figures, and until the page has caught up, medians
of 5; the memory of the viewer after it has read the header, a twentieth, and all of the journal; and how long
the answer to one request takes once nothing is new. Needs the extra `test` and Chromium.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.builders import make_frame, make_group, make_rollout, make_scenario
from support.journals import group_events
from support.sweeps import SETTINGS

from pytest_tfgrpo.core.files import JOURNAL, run_folder
from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.python.clock import utc_now
from pytest_tfgrpo.core.records import Phase, RunHeader, header_fields
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.runs.journal.journal import SCHEMA, encode

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TIMES = 5
SCENARIOS, EACH = 1_000, 5
PROGRAM = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main(['view', '--no-browser']))"


def header(epochs: int) -> dict[str, object]:
    """Return the first event of a run with so many training epochs."""
    scenarios = tuple(make_scenario(f"task-{n}", domain=f"domain-{n % 6}") for n in range(SCENARIOS))
    ids = tuple(s.id for s in scenarios)
    start = RunHeader(
        run_id="run1",
        task_id="demo",
        started_at=utc_now(),
        settings={**SETTINGS, "eval_rollouts": EACH},  # type: ignore[typeddict-item]
        stamps={},
        versions={},
        scenarios=scenarios,
    )
    phases = [
        Phase(epoch=n, mode="train", temperature=0.7, rollouts=EACH, scenarios=ids)
        for n in range(1, epochs + 1)
    ]
    library = to_wire(Library(experiences=(), hash=""))
    wire = to_wire(header_fields(start))
    return {"schema": SCHEMA, **wire, "phases": to_wire(phases), "library": library, "packs": []}


def grow(file: BinaryIO, start: int, stop: int) -> None:
    """Write the groups from `start` to `stop`, each with its rollouts; group 0 is that of the header."""
    frames = tuple(make_frame(input={"text": "x" * 200}, output="y" * 300) for _ in range(4))
    for n in range(start, stop):
        epoch, place = n // SCENARIOS + 1, n % SCENARIOS
        group_id = f"run1.e{epoch}.task-{place}"
        rollouts = tuple(
            replace(
                make_rollout(i, float((n + i) % 3 == 0)),
                rollout_id=f"{group_id}.r{i}",
                group_id=group_id,
                scenario_id=f"task-{place}",
                epoch=epoch,
                mode="train",
                frames=frames,
            )
            for i in range(EACH)
        )
        group = make_group([1.0] * EACH, rollouts=rollouts, epoch=epoch, scenario_id=f"task-{place}")
        for i, (name, data) in enumerate(group_events(replace(group, group_id=group_id, mode="train"))):
            file.write(encode(2 + n * (EACH + 1) + i, name, data))
    file.flush()


@contextmanager
def viewer(folder: Path) -> Iterator[tuple[int, str]]:
    """Run `tfgrpo view`; yields its process id and the address of its page."""
    with subprocess.Popen([sys.executable, "-c", PROGRAM], cwd=folder, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        told = b"".join(process.stdout.readline() for _ in range(3)).decode()
        try:
            yield process.pid, re.findall(r"http://\S+", told)[0]
        finally:
            process.terminate()


def caught_up(address: str) -> float:
    """Ask until the viewer has read all of the journal; return the seconds of one more request."""
    while True:
        with urllib.request.urlopen(f"{address}state") as answer:
            state = json.loads(answer.read())
        assert not state["problem"], state["problem"]
        if not state["behind"]:
            break
    start = time.perf_counter()
    with urllib.request.urlopen(f"{address}state") as answer:
        answer.read()
    return time.perf_counter() - start


def memory_mb(pid: int) -> float:
    """Return the resident memory of a process."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) / 1000


def opened(browser: Browser, folder: Path) -> list[tuple[float, float, float]]:
    """Return seconds to first paint, first figures, and the end of the journal, of each opening."""
    found = []
    for _ in range(TIMES):
        with viewer(folder) as (_, address):
            tab = browser.new_context().new_page()
            tab.goto(address)
            tab.locator("#where b").wait_for()
            figures = tab.evaluate("performance.now()")
            tab.locator("#pulse", has_text=re.compile("^running$")).wait_for()
            end = tab.evaluate("performance.now()")
            paint = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            found.append((paint / 1000, figures / 1000, end / 1000))
            tab.context.close()
    return found


def main() -> None:
    """Measure an empty run and a long one."""
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser()
    parser.add_argument("--rollouts", type=int, default=100_000)
    groups = parser.parse_args().rollouts // EACH
    path = next(found for name in ("chromium", "google-chrome") if (found := shutil.which(name)))
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        (folder / "pytest.ini").write_text("[pytest]\ntfgrpo_task_id = demo\n", encoding="utf-8")
        journal = run_folder(folder / "out", "demo", "run1") / JOURNAL
        journal.parent.mkdir(parents=True)
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with journal.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(encode(1, "run", header(-(-groups // SCENARIOS))))
            file.flush()
            empty = opened(browser, folder)
            with viewer(folder) as (pid, address):
                for label, start, stop in (
                    ("header", 0, 0),
                    ("a twentieth", 0, groups // 20),
                    ("all", groups // 20, groups),
                ):
                    grow(file, start, stop)
                    answer_s = caught_up(address)
                    size = journal.stat().st_size / 1e6
                    print(f"{label}: journal {size:.1f} MB, viewer {memory_mb(pid):.1f} MB, "
                          f"one answer {1000 * answer_s:.1f} ms", flush=True)  # fmt: skip
            long = opened(browser, folder)
        browser.close()
    for n, what in enumerate(("first paint", "first figures", "caught up")):
        before, after = (statistics.median(row[n] for row in rows) for rows in (empty, long))
        figures = f"empty {before:.3f} s, long {after:.3f} s, ratio {after / before:.2f}"
        print(f"{what}: {figures}")


if __name__ == "__main__":
    main()
