"""What an attempt left in its workspace, and what of it is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_rollout, make_scenario

from pytest_tfgrpo.core.errors import ProviderError
from pytest_tfgrpo.core.settings import BY_NAME
from pytest_tfgrpo.engine.phases import workspace_files
from pytest_tfgrpo.engine.phases.workspace_files import with_files
from pytest_tfgrpo.scoring.checks.registry import KINDS

CHECKED = make_scenario("s", checks=(), checker="t.py::f")
PLAIN = make_scenario("s")


class Left:
    """A workspace that was made or not, and cannot be made or made safe."""

    def __init__(self, made: bool, broken: str = "") -> None:
        self.made, self._broken, self.secured = made, broken, False

    def make(self) -> None:
        if self._broken == "make":
            raise ProviderError("the disk is full", "workspace")
        self.made = True

    def secure(self) -> None:
        if self._broken == "secure":
            raise ProviderError("it holds a pipe", "workspace")
        self.secured = True

    def withdraw(self) -> None:
        assert self.secured


@pytest.mark.parametrize(("status", "kept"), [("ok", ["a.png"]), ("failed", [])])
def test_pictures_that_the_answer_names_are_kept(tmp_path: Path, status: str, kept: list[str]) -> None:
    async def used(*_: object) -> None:
        return None

    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(16))
    left: Any = Left(made=True)
    left.path = tmp_path
    job = SimpleNamespace(settings={name: setting.default for name, setting in BY_NAME.items()}, kinds=KINDS)
    context: Any = SimpleNamespace(job=job, decoys=SimpleNamespace(used=used))
    call: Any = SimpleNamespace(workspace=left, prompt=None)
    rollout = make_rollout(status=status, answer="see a.png")
    got = asyncio.run(with_files(context, call, PLAIN, rollout))
    assert [one.name for one in got.pictures if one.data] == kept


@pytest.mark.parametrize(
    ("scenario", "status", "record", "left", "decoy", "found"),
    [
        (PLAIN, "ok", None, Left(made=True), None, ("ok", (), False, None, True)),
        (PLAIN, "ok", None, Left(made=False), "answer", ("ok", (), False, "answer", False)),
        (PLAIN, "ok", "r.jsonl", Left(made=True), None, ("ok", (), False, None, True)),
        (CHECKED, "ok", None, Left(made=False), None, ("ok", (), False, None, True)),
        (CHECKED, "ok", "r.jsonl", Left(made=True), "a.txt", ("ok", ("changed",), True, "a.txt", True)),
        (CHECKED, "ok", "r.jsonl", Left(made=False), None, ("ok", ("changed",), True, None, True)),
        (CHECKED, "failed", "r.jsonl", Left(made=False), None, ("failed", (), False, None, False)),
        (CHECKED, "ok", "r.jsonl", Left(made=False, broken="make"), None, ("error", (), False, None, False)),
        (PLAIN, "ok", "r.jsonl", Left(made=True, broken="secure"), "x", ("failed", (), False, None, True)),
    ],
)
def test_what_is_kept_of_a_workspace_depends_on_who_looks_there(
    monkeypatch: pytest.MonkeyPatch,
    scenario: Any,
    status: str,
    record: Any,
    left: Left,
    decoy: Any,
    found: Any,
) -> None:
    monkeypatch.setattr(workspace_files, "changes_in", lambda workspace: ("changed",))
    settings = {name: setting.default for name, setting in BY_NAME.items()} | {"record": record}

    async def used(*_: object) -> str | None:
        return decoy

    job = SimpleNamespace(settings=settings, kinds=KINDS)
    context: Any = SimpleNamespace(job=job, decoys=SimpleNamespace(used=used))
    call: Any = SimpleNamespace(workspace=left, prompt=None)
    rollout = make_rollout(status=status, files=())
    got = asyncio.run(with_files(context, call, scenario, rollout))
    assert (got.status, got.files, got.files_kept, got.decoy, left.made) == found
    if got.status != status:
        assert got.failure is not None
        assert (got.failure.code, got.failure.message) == (
            "workspace", {"make": "the disk is full", "secure": "it holds a pipe"}[left._broken]
        )  # fmt: skip
