"""Worlds of rollouts: when they are set up and torn down, and whose fault it is when that breaks."""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support.builders import make_rollout, make_scenario
from support.jobs import ScriptedActor, make_job, run_job, suite

from pytest_tfgrpo.core.scenarios import WorldStep
from pytest_tfgrpo.engine.attempts.attempt import AttemptResult
from pytest_tfgrpo.engine.attempts.first_crashes import ALIKE, SEVERAL
from pytest_tfgrpo.engine.stages import worlds as module
from pytest_tfgrpo.engine.stages.worlds import Worlds
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.workspace import Workspace

SECRET = "sk-proj-" + "a1B2c3D4" * 4


def test_a_tear_down_that_breaks_after_an_attempt_that_is_no_result_is_a_warning(tmp_path: Path) -> None:
    def crash(call: ActorCall) -> str:
        raise KeyError("MODEL")

    breaks = WorldStep(target="shop.worlds:tear_down")  # there is no such module
    scenarios = [replace(one, teardown=breaks) for one in suite(0, SEVERAL)]
    job = make_job(ScriptedActor(crash), tmp_path, scenarios=scenarios, epochs=0, baseline_sweep="off")
    run, _ = run_job(job)
    assert "rollouts all failed with one message" in run.reason
    told = [text for text in run.warnings if "teardown 'shop.worlds:tear_down' raised" in text]
    assert [text.partition(":")[0][:5] for text in told] == ["run1."] * len(told)
    assert len(told) >= ALIKE


class Street:
    """Worlds of one scenario, whose steps note what they do."""

    def __init__(self, folder: Path, left: dict[str, str] | None = None) -> None:
        self.log: list[str] = []
        self.written: list[tuple[str, bool]] = []
        self.warnings: list[str] = []
        self.renewed: list[Path] = []
        self.may_end = threading.Event()
        self.may_end.set()
        self._folder = folder
        up, down = (WorldStep(target=f"street:{name}") for name in ("up", "down"))
        self.scenario = replace(make_scenario("lamp"), setup=up, teardown=down)
        job: Any = SimpleNamespace(
            root=folder,
            settings={},
            scenarios=(self.scenario,),
            resumed=SimpleNamespace(worlds=left or {}),
            made_of=lambda _: ((), None, None),
        )
        writer: Any = SimpleNamespace(world=self._write, commit=self._commit)
        self.worlds = Worlds(job, writer, self.warnings.append)

    def _write(self, rollout_id: str, scenario_id: str, *, up: bool) -> None:
        assert scenario_id == "lamp"
        self.written.append((rollout_id, up))

    async def _commit(self) -> None:
        self.log.append("committed")

    def up(self, context: Any) -> None:
        self.log.append("up")

    def down(self, context: Any) -> None:
        self.may_end.wait(60)
        self.log.append(f"down in {context.workspace.name}")

    def slot(self, name: str = "r0") -> Any:
        call = SimpleNamespace(workspace=Workspace(self._folder / name, ()))
        return SimpleNamespace(question=SimpleNamespace(scenario=self.scenario), rollout_id=name, call=call)

    def asked(self, status: str) -> Callable[[Any], Awaitable[AttemptResult | None]]:
        async def make(slot: Any) -> AttemptResult | None:
            self.log.append("asked")
            if status == "none":
                return None
            return AttemptResult(status=status, started_at="", latency_ms=0.0)  # type: ignore[arg-type]

        return make

    # what begins with worlds that a killed run left

    def left(self, rollout_id: str, *_: object) -> Workspace | None:
        folder = self._folder / rollout_id
        return Workspace(folder, (), left=True) if folder.exists() else None

    def new(self, rollout_id: str, *_: object) -> Workspace:
        return Workspace(self._folder / f"new-{rollout_id}", ())

    def renew(self, workspace: Workspace) -> None:
        self.renewed.append(workspace.path)


@pytest.fixture
def street(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Street]:
    def opened(**more: Any) -> Street:
        made = Street(tmp_path, **more)
        steps = ModuleType("street")
        steps.up, steps.down = made.up, made.down  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "street", steps)
        return made

    return opened


@pytest.mark.parametrize("status", ["error", "none"])
def test_a_world_that_nothing_checks_is_torn_down_at_once(street: Callable[..., Street], status: str) -> None:
    lane = street()
    asyncio.run(lane.worlds.around(lane.slot(), lane.asked(status)))
    assert lane.log == ["committed", "up", "asked", "down in r0"]
    assert lane.written == [("r0", True), ("r0", False)]


@pytest.mark.parametrize("status", ["ok", "failed"])
def test_a_world_that_is_checked_stands_until_then_and_is_torn_down_once(
    street: Callable[..., Street], status: str
) -> None:
    lane, rollout = street(), make_rollout(0)

    async def run() -> list[Any]:
        slot = lane.slot(rollout.rollout_id)
        await lane.worlds.around(slot, lane.asked(status))
        assert lane.log == ["committed", "up", "asked"]
        return await asyncio.gather(
            lane.worlds.checked(slot, rollout), lane.worlds.undo(slot), lane.worlds.close()
        )

    found, *_ = asyncio.run(run())
    assert found == rollout
    assert [line[:4] for line in lane.log].count("down") == 1
    assert (lane.written[1:], lane.warnings) == ([(rollout.rollout_id, False)], [])


def test_a_set_up_that_breaks_is_the_error_of_its_rollout_and_tells_no_secret(
    street: Callable[..., Street],
) -> None:
    lane = street()

    def breaks(_: object) -> None:
        raise RuntimeError(f"the key {SECRET} is not known")

    sys.modules["street"].up = breaks  # type: ignore[attr-defined]
    found = asyncio.run(lane.worlds.around(lane.slot(), lane.asked("ok")))
    assert found is not None
    assert found.failure is not None
    assert (found.status, found.failure.code) == ("error", "setup")
    assert "setup 'street:up' raised" in found.failure.message
    assert "[redacted:api_key]" in found.failure.message
    assert SECRET not in found.failure.message
    assert lane.log == ["committed", "down in r0"], "nobody was asked"


def test_what_a_killed_run_left_is_torn_down_where_it_stands_else_in_a_new_folder(
    street: Callable[..., Street], tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    lane = street(left={"there": "lamp", "gone": "lamp", "other": "no such scenario"})
    asyncio.run(lane.worlds.begin(lane))  # type: ignore[arg-type]
    assert sorted(lane.log) == ["down in new-gone", "down in there"]
    assert sorted(lane.written) == [("gone", False), ("there", False)]
    assert sorted(path.name for path in lane.renewed) == ["new-gone", "there"]
    assert lane.warnings == []


def test_a_tear_down_that_breaks_after_a_killed_run_is_told(street: Callable[..., Street]) -> None:
    lane = street(left={"gone": "lamp"})
    sys.modules["street"].down = lambda _: 1 / 0  # type: ignore[attr-defined]
    asyncio.run(lane.worlds.begin(lane))  # type: ignore[arg-type]
    (told,) = lane.warnings
    assert told.startswith("gone, which an interrupted run left: teardown 'street:down' raised")


def test_the_end_of_a_run_tears_down_what_it_left_and_says_what_took_too_long(
    street: Callable[..., Street], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLOSE_S", 0.01)
    lane = street()

    async def run() -> None:
        await lane.worlds.around(lane.slot(), lane.asked("ok"))
        lane.may_end.clear()
        await lane.worlds.close()
        assert lane.warnings == ["r0: its world was not torn down within 0.01 s"]
        lane.may_end.set()
        await lane.worlds.undo(lane.slot())

    asyncio.run(run())
    assert lane.log[-1] == "down in r0"
