"""What the tests of plugin/test_replay.py share with the slow ones."""

import json
import shutil
from pathlib import Path
from typing import Any

from support.fake_model import Body, Reply, refused
from support.teachers import asked, operation, says

FILE = "recording.jsonl"
REPLAY = ("--tfgrpo-actor", f"replay:{FILE}")
RECORD = ("--tfgrpo-record", FILE)
LESSON = "For letters: count each of the words, one by one."
TIMES = ("started_at", "finished_at", "updated_at", "created_at")
HISTORY = "evaluations"
"""The runs before it."""


def comparable(path: Path) -> Any:
    """Return a file of a run without what may differ: ids, times, earlier runs, who answers, and prices."""
    value = json.loads(path.read_text().replace(path.parent.name, "RUN"))
    value.get("settings", {}).update(actor="", record="")

    def clean(value: Any) -> Any:
        if isinstance(value, dict):
            ids = {"id", "parents"} if "polarity" in value else set()
            return {k: clean(v) for k, v in value.items() if k not in {*TIMES, HISTORY, "prices", *ids}}
        return [clean(v) for v in value] if isinstance(value, list) else value

    return clean(value)


def assert_same(recorded: Path, replayed: Path) -> None:
    assert recorded != replayed
    for name in ("report.json", "per-epoch.json"):
        assert comparable(replayed / name) == comparable(recorded / name)


def answer(body: Body, attempt: int) -> Reply | Body | str:
    """Be pupil, teacher or judge; never the same answer twice, and now and then none."""
    if body["model"] == "teacher":
        if "Several tasks of one domain" in asked(body):
            return says(operation(lesson=LESSON, sources=["P1"]))
        return "no JSON at all" if attempt == 0 and body["seed"] % 5 == 0 else says(operation(lesson=LESSON))
    if body["model"] == "judge":
        keys = body["response_format"]["json_schema"]["schema"]["properties"]
        return json.dumps({key: {"why": "it is so", "met": body["seed"] % 2 == 0} for key in keys})
    if body["seed"] % 11 == 0:
        return refused(400, "not this prompt")
    return "3" if LESSON in body["messages"][0]["content"] or body["seed"] % 3 == 0 else "4"


AGENTS = '''
from pytest_tfgrpo import AgentFailure, ProviderError


class Moody:
    """Never says the same twice."""

    said = 0


def moody(context):
    """Fail in every way there is; be right on some seeds, and always once the prompt carries a lesson."""
    Moody.said += 1
    match context.seed % 7:
        case 0:
            raise RuntimeError("the agent fell over")
        case 1:
            raise ProviderError("not for this temperature", "declined")
        case 2:
            raise AgentFailure("it gave up", "gave_up")
    right = context.seed % 3 == 0 or "<experiences" in context.prompt.system
    frame = {"kind": "tool", "name": "count" if right else "guess", "tokens": 3, "cost_usd": 0.001}
    frame |= {"output": f"try {Moody.said}", "latency_ms": 1.5}
    return {"answer": "3" if right else "4", "frames": [frame]}
'''


def cut(folder: Path, keep: float) -> None:
    """Leave of a run what it had written when it was killed, a share of its journal."""
    data = (folder / "journal.jsonl").read_bytes()
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    (folder / "journal.jsonl").write_bytes(data[: int(keep * len(data))])


WRITER = """
import json
from pathlib import Path

def write(context):
    note = Path(context.workspace) / "sub" / "note.txt"
    note.parent.mkdir()
    note.write_text("done")
    (note.parent / "raw.bin").write_bytes(bytes(range(256)))
    (Path(context.workspace) / "given.txt").unlink(missing_ok=True)
    return "3" if context.seed % 2 else "4"
"""
