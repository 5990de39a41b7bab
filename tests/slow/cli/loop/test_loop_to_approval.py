"""A fresh project by the commands of docs/feedback-loop.md, from imported traces to an approved version."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from support.feedback.training_service import Service, configure, kill_run, make_project, wait
from support.otlp_spans import agent, span, write_lines
from support.tools import tfgrpo

from pytest_tfgrpo.production.bus.registry import open_bus

pytestmark = pytest.mark.timeout(400)

TASKS = ("figs", "plums", "pears", "limes")


def run(number: int, task: str, status: str) -> list[dict[str, object]]:
    """Return the spans of an agent that counted, by a tool if it was right, and of its answer."""
    trace = f"{number + 1:032x}"
    asked, right = f"How many {task} are on 2 trays of 3?", status != "failed"
    said = {
        f"gen_ai.{side}.messages": json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])
        for side, role, text in (("input", "user", asked), ("output", "assistant", "6" if right else "5"))
    }
    given = {
        "tfgrpo.task_status": status,
        "tfgrpo.task_key": task,
        "tfgrpo.domain": "general",
        "session.id": f"chat-{number}",
        "user.id": f"user-{number}@example.org",
        **said,
    }
    tool = span(2, "execute_tool", trace=trace, attributes={"gen_ai.tool.name": "count_items"})
    chat = span(3, "chat", trace=trace, attributes=said)
    return [agent(trace=trace, attributes=given), *([tool] if right else []), chat]


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.chdir(tmp_path)
    make_project(tmp_path)
    configure(tmp_path, "embedded:bus.db")
    found = Service(tmp_path)
    yield found
    found.end(signal.SIGKILL)
    kill_run(tmp_path)


def test_from_import_to_approval(service: Service, tmp_path: Path) -> None:
    spans = [
        one
        for number, task in enumerate(task for task in TASKS for _ in range(6))
        for one in run(number, task, "failed" if number % 2 else "completed_successfully")
    ]
    write_lines(tmp_path / "spans.jsonl", *spans)  # type: ignore[arg-type]
    assert "of 24 traces" in tfgrpo("loop", "import", "spans.jsonl")
    assert "24 trajectories" in tfgrpo("loop", "report")
    assert "at 4 tasks" in tfgrpo("loop", "evidence", "--to", "evidence.jsonl")
    job = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", tfgrpo("loop", "train"))
    assert job
    service.start()
    with closing(open_bus("embedded:bus.db")) as bus:
        assert wait(bus, tmp_path, job=job[0]) == "completed", (tmp_path / "serve.log").read_text()
    listed = tfgrpo("loop", "versions", "list")
    assert re.search(r"^v2 +(validated|rejected|needs approval)", listed, re.MULTILINE), listed
    trajectory = json.loads((tmp_path / "evidence.jsonl").read_text().splitlines()[1])["attempts"][0][
        "trajectory_id"
    ]
    assert "carried by v2" in tfgrpo("loop", "versions", "trace", trajectory)
    by = ("--by", "ada", "--reason", "read the report")
    assert "v2 may not be deployed: safety suite bias" in tfgrpo("loop", "approve", "v2", *by, code=1)
    approved = tfgrpo("loop", "approve", "v2", "--emergency-override", *by)
    assert "of new sessions" in approved
    assert "completed" in tfgrpo("loop", "status")
