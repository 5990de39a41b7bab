"""Agents of the contract suite of executors, which a worker can open by their names."""

from __future__ import annotations

import asyncio
import atexit
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from pytest_tfgrpo import ProviderError
from pytest_tfgrpo.core.python import clock
from pytest_tfgrpo.engine.attempts import attempt

EARLIER = "2001-01-01T00:00:00+00:00"


def half(context: Any) -> dict[str, Any]:
    """Be right on about half of the seeds, and report a frame."""
    answer = "3" if context.seed % 2 else "4"
    return {
        "answer": answer,
        "frames": [{"kind": "tool", "name": "count", "output": answer, "tokens": 2, "cost_usd": 0.01}],
    }


async def in_coroutine(context: Any) -> str:
    """Be right on about half of the seeds."""
    await asyncio.sleep(0)
    return "3" if context.seed % 2 else "4"


def faulty(context: Any) -> Any:
    """Fail in another way for each scenario, which it names."""
    match context.prompt.user:
        case "raise":
            raise ValueError("no such word")
        case "exit":
            raise SystemExit(4)
        case "garbage":
            return 3
        case "oversize":
            return "x" * 2_000_000
        case "refused":
            raise ProviderError("no", "rejected")
        case "cancel":
            raise asyncio.CancelledError
    return "3"


def in_pieces(context: Any) -> str:
    """Count the messages of a conversation in the session's state, and tell them."""
    state = context.session.state
    state["n"] = state.get("n", 0) + 1
    return f"{state['n']}: {context.session.message}"


def takes_a_moment(context: Any) -> str:
    """Be right on about half of the seeds, after some milliseconds."""
    time.sleep(0.03)
    return "3" if context.seed % 2 else "4"


def writes(context: Any) -> str:
    """Leave a file, and tell what was attached."""
    (context.workspace / "left.txt").write_text(f"seed {context.seed % 2}")
    return ",".join(sorted(path.name for path in context.workspace.iterdir()))


def sleeps(context: Any) -> str:
    """Block for as long as the prompt says."""
    time.sleep(float(context.prompt.user))
    return "3"


def waits(context: Any) -> str:
    """Block until the file that the prompt names is there."""
    while not Path(context.prompt.user).exists():
        time.sleep(0.005)
    return "3"


def stays(context: Any) -> str:
    """Tell who it is in the folder that the prompt names, and never end."""
    _tell(context)
    while True:
        time.sleep(0.01)


async def keeps_the_loop(context: Any) -> str:
    """Tell who it is, and keep its event loop from running for ever."""
    _tell(context)
    while True:
        time.sleep(0.01)


def notes(context: Any) -> str:
    """Tell when each rollout began."""
    _tell(context)
    return "3"


def dies(context: Any) -> str:
    """End its process in the way that the prompt names."""
    match context.prompt.user:
        case "exit":
            os._exit(7)
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
    return "3"


def process(context: Any) -> str:
    """Tell its process."""
    return str(os.getpid())


def leaves_a_child(context: Any) -> str:
    """Start a program that outlives the rollout, and tell its process."""
    return str(subprocess.Popen(["sleep", "600"]).pid)


def leaves_a_note(context: Any) -> str:
    """Write a file when its process ends as it should."""
    atexit.register((Path(context.prompt.user) / str(os.getpid())).touch)
    return str(os.getpid())


def tells_its_trace(context: Any) -> str:
    """Tell the trace and the span that it runs in."""
    from opentelemetry import trace

    here = trace.get_current_span().get_span_context()
    return f"{here.trace_id:032x} {here.span_id:016x}"


def in_another_time(context: Any) -> str:
    """Let the clocks of its process be those of a node that is a minute behind, and runs fast."""
    for module in (attempt, clock):
        vars(module)["utc_now"] = lambda **_: EARLIER
    vars(attempt)["elapsed_ms"] = vars(clock)["elapsed_ms"] = lambda _: 60_000.0
    return "3"


def _tell(context: Any) -> None:
    name = f"{time.monotonic_ns()}-{os.getpid()}-{context.task.id}"
    (Path(context.prompt.user) / name).touch()


async def takes_its_time(context: Any) -> str:
    """Tell when it begins and when it has an answer, in the folder that the prompt names."""
    name = f"{context.task.id}-{context.seed}-{time.monotonic_ns()}-{os.getpid()}"
    folder = Path(context.prompt.user)
    (folder / f"begun-{name}").touch()
    await asyncio.sleep(0.3)
    (folder / f"done-{name}").touch()
    return "3"


async def dies_beside_others(context: Any) -> str:
    """End its process where the prompt says so; others answer a moment later."""
    if context.prompt.user == "exit":
        os._exit(7)
    await asyncio.sleep(0.3)
    return "3"


async def slow_on_one_node(context: Any) -> str:
    """Tell its process; the first that is asked answers nothing until others have answered 30 times."""
    own, folder = str(os.getpid()), Path(context.prompt.user)
    slow = folder / "slow"
    try:
        with slow.open("x") as file:
            file.write(own)
    except FileExistsError:
        pass
    await asyncio.sleep(0.02)
    while slow.read_text() == own and len(list(folder.glob("done-*"))) < 30:
        await asyncio.sleep(0.02)
    (folder / f"done-{context.task.id}").touch()
    return own
