"""The command ``tfgrpo learn demo``: a fix and a cheat are captured, and what becomes of each is shown.

Every step is the command that you would type, in a process of its own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import join

from pytest_tfgrpo.cli.demo_folder import demo_folder
from pytest_tfgrpo.cli.learn.demo_repository import CHEAT, FIX, change, make_shop, prompt
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.wire.strict import load_json

PROGRAM = "import sys; from pytest_tfgrpo.cli import main; sys.exit(main(sys.argv[1:]))"
PERSON = "ann"
TESTED = {"command": "python -m pytest -q tests/test_pages.py", "exit_code": 0}
"""What the history of the demonstration's agent holds."""
STEP_S = 300.0
"""How long one step may take."""
SHOWN = 12
"""Lines of a step's output that are shown."""


def demo(arguments: Arguments) -> Iterator[str]:
    """Show a fix and a cheat on their way: captured, proven, written up, tried, promoted."""
    with demo_folder(arguments.into) as folder:
        yield from _story(folder)
        if arguments.into:
            yield f"all of it is in {folder}"


def _story(folder: Path) -> Iterator[str]:
    shop = folder / "shop"
    make_shop(shop)
    write_text(folder / "prompt.md", prompt())
    write_text(folder / "history.jsonl", json.dumps(TESTED) + "\n")
    capture = ["capture", "--approver", PERSON, "--prompt", "../prompt.md"]
    yield "an agent says that pages are fast now; its test asserts a constant that it wrote itself"
    change(shop, CHEAT)
    yield from _tfgrpo(shop, "learn", *capture)
    yield "another one reads all customers of a page in one query, with a test, and ann approves it"
    change(shop, FIX)
    yield from _tfgrpo(shop, "learn", *capture, "--history", "../history.jsonl")
    yield "a worker proves what was captured, whatever the files are by now"
    yield from _tfgrpo(shop, "learn", "work")
    job, pattern = _proven(shop)
    yield "the pattern that it wrote is a candidate, which no agent reads; does it help?"
    yield from _tfgrpo(shop, "patterns", "trial", pattern, "--suite", "bench")
    yield "ann sees the diff of the tests, which a promotion needs, and promotes it"
    yield from _tfgrpo(shop, "learn", "show", job, "--tests", "--reviewer", PERSON, last=1)
    yield from _tfgrpo(
        shop, "patterns", "promote", pattern, "--by", PERSON, "--reason", "it helps where pages list rows"
    )
    yield "the next prompt carries its lesson, and agents that read skills find its file"
    yield from _tfgrpo(shop, "patterns", "sync")
    yield from _pytest(shop)


def _proven(shop: Path) -> tuple[str, str]:
    """Return the proven job and its pattern; raises StoreError where the demonstration failed."""
    done = _run(shop, [sys.executable, "-c", PROGRAM, "learn", "status", "--json"])
    for job in load_json(done)["jobs"]:
        if job.get("status") == "validated" and job.get("pattern"):
            return job["job_id"], job["pattern"]
    raise StoreError("no job of the demonstration was proven; the lines above say why")


def _tfgrpo(shop: Path, *words: str, last: int = SHOWN) -> Iterator[str]:
    yield f"$ {join(['tfgrpo', *(_short(word) for word in words)])}"
    yield from _indented(_run(shop, [sys.executable, "-c", PROGRAM, *words]), last)


def _pytest(shop: Path) -> Iterator[str]:
    yield "$ pytest -q bench"
    yield from _indented(_run(shop, [sys.executable, "-m", "pytest", "-q", "bench"]), 1)


def _short(word: str) -> str:
    """Return the id of a job as a person types it."""
    return word[:8] if re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", word) else word


def _indented(text: str, last: int) -> Iterator[str]:
    yield from (f"    {line}" for line in text.splitlines()[-last:])


def _run(shop: Path, argv: Sequence[str]) -> str:
    """Return what a program prints; raises StoreError where it fails."""
    done = subprocess.run(argv, cwd=shop, capture_output=True, text=True, timeout=STEP_S, check=False)
    if done.returncode:
        raise StoreError(
            f"a step of the demonstration failed: {(done.stderr or done.stdout).strip()[-2000:]}"
        )
    return done.stdout
