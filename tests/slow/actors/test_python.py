"""The python actor."""

import subprocess
import sys
from pathlib import Path


def test_a_hanging_thread_does_not_keep_the_process_from_ending(tmp_path: Path) -> None:
    (tmp_path / "hang.py").write_text("import threading\ndef solve(context): threading.Event().wait()\n")
    program = """
import asyncio, sys
from pathlib import Path
from pytest_tfgrpo.core.scenarios import Prompt, Task
from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.engine.attempts.attempt import attempt
from pytest_tfgrpo.sandbox.workspace import Workspace
call = ActorCall(task=Task(id="t", domain="d", prompt="p"), prompt=Prompt(system="", user="p"),
    temperature=0.0, seed=1, workspace=Workspace(Path("w")), timeout_s=0.05, answer_max_bytes=9)
print(asyncio.run(attempt(open_actor("python:hang:solve", root=Path.cwd(), settings={}), call)).failure.code)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=100
    )
    assert (done.stdout, done.stderr, done.returncode) == ("timeout\n", "", 0)
