"""What the application holds: runs, choices, and what never reaches the agent."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.builders import make_experience, make_pack
from support.live.session import CONFIG, Backend

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.learning.library.library import of, save_library
from pytest_tfgrpo.production.live.config import load_live_config
from pytest_tfgrpo.production.live.records import LiveEvent
from pytest_tfgrpo.production.live.session import Live, LiveRun, _number, default_choice


@pytest.fixture
def backend() -> Backend:
    return Backend()


@pytest.fixture
def live(tmp_path: Path, backend: Backend) -> Iterator[Live]:
    save_library(tmp_path / "library.json", of([make_experience()]))
    (tmp_path / "live.toml").write_text(CONFIG)
    with Live(load_live_config(tmp_path / "live.toml", {"enabled": True}, {}), backend) as opened:
        yield opened


def kinds(events: list[LiveEvent]) -> list[str]:
    return [event.kind for event in events]


def test_a_run_reports_its_choices_turns_tools_and_end(live: Live, backend: Backend) -> None:
    with live.run("ticket-17", category="billing", prompt="Why was I billed twice?") as run:
        arm = run.choose("config")
        run.turn()
        run.tool("search", error=None)
        run.tool("search", error=ValueError("no such customer"))
        run.safety(blocked=False)
        run.end("You were not.", score=0.8, cost_usd=0.01)
    assert (arm.name, arm.values["temperature"], arm.propensity) == ("learned", 0.7, 0.75)
    assert kinds(backend.events) == ["start", "choice", "turn", "tool", "tool", "safety", "end"]
    assert [event.seq for event in backend.events] == list(range(7))
    assert len({event.owner for event in backend.events}) == 1
    start, choice, _, first, second, safety, end = (event.data for event in backend.events)
    assert start == {
        "category": "billing", "prompt": "Why was I billed twice?", "selector": 7, "control": False
    }  # fmt: skip
    assert choice["probabilities"] == {"bare": 0.25, "learned": 0.75}
    assert (choice["point"], choice["place"], choice["arm"]) == ("config", 0, "learned")
    assert (first["error"], second["error"]) == (None, "ValueError: no such customer")
    assert safety == {"blocked": False}
    assert (end["status"], end["score"], end["cost_usd"], end["completed"]) == ("succeeded", 0.8, 0.01, True)
    assert (end["prompt_chars"], end["reply_chars"], end["reply"]) == (23, 13, "You were not.")


def test_a_run_may_have_neither_category_nor_prompt(live: Live, backend: Backend) -> None:
    with live.run("ticket", category=None, prompt=None) as run:
        run.end("done")
    start, end = (event.data for event in backend.events)
    assert (start["category"], start["prompt"], end["prompt_chars"]) == ("", "", 0)


def test_a_run_that_ends_without_a_reply_has_none(live: Live, backend: Backend) -> None:
    with live.run("ticket"):
        pass
    assert (backend.events[-1].data["status"], backend.events[-1].data["reply_chars"]) == ("succeeded", 0)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("x"), "failed"),
        (TimeoutError(), "failed"),
        (asyncio.CancelledError(), "failed"),
        (KeyboardInterrupt(), "cancelled"),
        (SystemExit(), "cancelled"),
        (GeneratorExit(), "failed"),
    ],
)
def test_what_gives_up_a_run_fails_it_and_what_ends_the_process_cancels_it(
    live: Live, backend: Backend, error: BaseException, status: str
) -> None:
    def work() -> None:
        with live.run("ticket"):
            raise error

    with pytest.raises(type(error)):
        work()
    end = backend.events[-1].data
    assert (end["status"], end["reason"], end["completed"]) == (status, type(error).__name__, False)


def test_a_cancelled_task_fails_its_run_as_a_time_limit_inside_does(live: Live, backend: Backend) -> None:
    async def serve(key: str, limit_s: float | None) -> None:
        with live.run(key):
            async with asyncio.timeout(limit_s):
                await asyncio.sleep(60)

    async def both() -> None:
        task = asyncio.create_task(serve("given up", None))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, serve("late", 0.0), return_exceptions=True)

    asyncio.run(both())
    ends = [backend.of(key)[-1].data for key in ("given up", "late")]
    assert [end["status"] for end in ends] == ["failed", "failed"]
    assert [end["reason"] for end in ends] == ["CancelledError", "TimeoutError"]


def test_a_run_that_has_ended_is_not_ended_again_by_what_comes_after(live: Live, backend: Backend) -> None:
    def work() -> None:
        with live.run("ticket") as run:
            run.end("sent")
            raise OSError("the browser is gone")

    with pytest.raises(OSError, match="browser"):
        work()
    assert kinds(backend.events) == ["start", "end"]


def test_a_retry_opens_the_next_attempt(live: Live, backend: Backend) -> None:
    with live.run("ticket") as run:
        run.choose("config")
        run.choose("config")
        run.retry()
        run.choose("config")
    assert [(e.attempt, e.data.get("place")) for e in backend.events] == [
        (1, None), (1, 0), (1, 1), (2, None), (2, 0), (2, None)
    ]  # fmt: skip


def test_the_control_group_takes_the_default_arm(live: Live, backend: Backend) -> None:
    backend.controls = {"ticket"}
    with live.run("ticket") as run:
        arm = run.choose("config")
    assert (arm.name, arm.propensity, dict(arm.values)) == ("bare", 1.0, {})
    assert backend.events[0].data["control"] is True
    assert backend.events[1].data["control"] is True


def test_an_unknown_point_raises_and_names_those_there_are(live: Live) -> None:
    with (
        live.run("ticket") as run,
        pytest.raises(SettingError, match=r"live.toml: no point.*'confg'; did you"),
    ):
        run.choose("confg")
    for point in ("x", None, ["config"]):
        with live.run("ticket") as run, pytest.raises(SettingError, match=r"no point is called .*config"):
            run.choose(point)  # type: ignore[arg-type]


def test_without_a_file_every_point_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    live = Live(load_live_config(None, {}, {}), None)
    with live.run("ticket") as run, pytest.raises(SettingError, match=r"has no points.*`tfgrpo live init`"):
        run.choose("config")


class Hostile:
    """An object that breaks whoever looks at it."""

    def __str__(self) -> str:
        raise RuntimeError("do not look")

    __repr__ = __bool__ = __float__ = __str__  # type: ignore[assignment]


USES: list[Callable[[Live, LiveRun], object]] = [
    lambda live, run: run.turn(),
    lambda live, run: run.tool(Hostile(), error=Hostile()),  # type: ignore[arg-type]
    lambda live, run: run.safety(Hostile()),  # type: ignore[arg-type]
    lambda live, run: run.retry(),
    lambda live, run: run.choose("config").lessons(Hostile()),  # type: ignore[arg-type]
    lambda live, run: run.end(Hostile(), score=Hostile()),  # type: ignore[arg-type]
    lambda live, run: live.outcome(Hostile(), Hostile()),  # type: ignore[arg-type]
    lambda live, run: live.run(Hostile(), category=Hostile(), prompt=Hostile()),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("broken", ["", "put", "choose", "is_control", "status"])
@pytest.mark.parametrize("use", USES)
def test_nothing_that_fails_reaches_the_agent_and_all_of_it_is_counted(
    live: Live, backend: Backend, use: Callable[[Live, LiveRun], object], broken: str
) -> None:
    backend.broken = broken
    with live.run("ticket") as run:
        use(live, run)
    run.choose("config")
    live.status()
    backend.broken = ""
    status = live.status()
    assert bool(status["swallowed"]) is bool(broken or status["last_swallowed"])
    if broken:
        assert sum(status["swallowed"].values()) >= 1


def test_a_choice_that_fails_is_the_default_arm(live: Live, backend: Backend) -> None:
    backend.broken = "choose"
    with live.run("ticket") as run:
        assert run.choose("config").name == "bare"
    assert live.status()["swallowed"] == {"choose": 1}
    assert live.status()["last_swallowed"] == "choose: RuntimeError: no selector"


def test_while_held_nothing_is_collected_and_a_run_that_met_a_hold_is_out_for_good(
    live: Live, backend: Backend
) -> None:
    with live.run("early") as run:
        backend.held = True
        assert run.choose("config").name == "bare"
        with live.run("late") as other:
            assert other.choose("config").propensity == 1.0
            backend.held = False
            other.turn()
        run.turn()
        live.outcome("early", 1.0)
    assert kinds(backend.events) == ["start", "outcome"]


def test_texts_are_kept_up_to_a_length_and_not_at_all_where_asked(
    tmp_path: Path, live: Live, backend: Backend
) -> None:
    with live.run("k" * 300, prompt="x" * 50_000) as run:
        run.end("\ud800é" * 20_000)
    start, end = (event.data for event in backend.events)
    assert (len(start["prompt"]), end["prompt_chars"], len(end["reply"])) == (20_400, 50_000, 20_400)
    assert len(backend.events[0].run) == 200
    silent = Live(load_live_config(live.config.path, {"text": "none"}, {}), backend)
    with silent.run("quiet", prompt="secret") as run:
        run.tool("search", error="secret")
        run.tool("search", error=ValueError("secret"))
        run.end("secret")
    assert [e.data["error"] for e in backend.of("quiet")[1:3]] == ["error", "ValueError"]
    assert "secret" not in str(backend.of("quiet"))
    assert backend.of("quiet")[-1].data["prompt_chars"] == 6


def test_a_key_is_cut_in_such_a_way_that_others_stay_others(live: Live, backend: Backend) -> None:
    for n in range(2):
        live.run("k" * 300 + str(n))
        live.outcome("k" * 300 + str(n), 1.0)
    assert [e.run for e in backend.events[:2]] == [backend.events[0].run] * 2
    assert len({e.run for e in backend.events}) == 2


def test_the_lessons_of_an_arm_are_those_for_the_task(live: Live, backend: Backend) -> None:
    lesson = make_experience()
    with live.run("ticket", category=lesson.domain) as run:
        arm = run.choose("config")
    fitting = arm.lessons(lesson.summary32)
    assert fitting.startswith("<experiences")
    assert lesson.summary32.split(":")[0] in fitting
    assert arm.lessons("zebra") == ""
    assert arm.lessons(lesson.summary32, domain="other") == ""
    assert arm.system(lesson.summary32) == fitting
    with live.run("another") as run:
        assert run.choose("config").lessons(lesson.summary32) == fitting, "without a category those of all"


def test_an_arm_with_a_prompt_pack_leaves_out_lessons_of_another_one(tmp_path: Path) -> None:
    from pytest_tfgrpo.learning.library.retrieval import raw_score
    from pytest_tfgrpo.production.live.arms import LiveArm
    from pytest_tfgrpo.production.live.config import ArmSpec

    pack, lesson = make_pack(), make_experience()
    own = ArmSpec(name="a", values={}, stamp="", library=of([lesson]), packs={"text": pack})
    arm = LiveArm(own, 1.0, "text", lambda *_: None)
    assert lesson.summary32 in arm.lessons(lesson.summary32)
    assert arm.system("zebra") == pack.system
    other = ArmSpec(
        name="a", values={}, stamp="", library=of([lesson]), packs={"text": make_pack(stamp="0" * 64)}
    )
    assert LiveArm(other, 1.0, "text", lambda *_: None).lessons(lesson.summary32) == ""
    score = raw_score(lesson, pack.weights)
    for least, taken in ((score, True), (score + 0.01, False)):
        picky = replace(own, packs={"text": make_pack(min_reward=least)})
        assert bool(LiveArm(picky, 1.0, "text", lambda *_: None).lessons(lesson.summary32)) is taken
    assert LiveArm(own, 1.0, "dates", lambda *_: None).lessons(lesson.summary32) == ""


def test_threads_and_tasks_share_one_object(live: Live, backend: Backend) -> None:
    def serve(n: int) -> None:
        with live.run(f"thread-{n}") as run:
            run.choose("config")
            run.tool("search")
            run.end("done")

    async def serve_task(n: int) -> None:
        with live.run(f"task-{n}") as run:
            run.choose("config")
            await asyncio.sleep(0)
            run.end("done")

    async def serve_tasks() -> None:
        await asyncio.gather(*(serve_task(n) for n in range(20)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(serve, range(50)))
    asyncio.run(serve_tasks())
    assert all(kinds(backend.of(f"thread-{n}")) == ["start", "choice", "tool", "end"] for n in range(50))
    assert all(kinds(backend.of(f"task-{n}")) == ["start", "choice", "end"] for n in range(20))
    assert len({e.owner for e in backend.events}) == 70


def test_one_run_may_be_used_by_several_threads(live: Live, backend: Backend) -> None:
    with live.run("ticket") as run:
        threads = [threading.Thread(target=lambda: [run.turn() for _ in range(200)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(e.seq for e in backend.events) == list(range(802))


def test_the_default_choice_is_certain(live: Live) -> None:
    choice = default_choice(live.config.points["config"], place=2, selector=3)
    assert (choice.arm, choice.propensity, choice.control) == ("bare", 1.0, True)


@pytest.mark.parametrize(
    ("value", "kept"),
    [(1, 1), (0.5, 0.5), (True, True), ("0.5", "0.5"), (np.float32(0.5), 0.5), (None, "None"), ([1], "[1]")],
)
def test_a_number_of_another_library_is_a_number_and_what_is_none_a_text(value, kept):
    found = _number(value)
    assert (found, type(found)) == (kept, type(kept))


def test_a_run_that_came_to_a_limit_without_a_reply_fails_as_incomplete(live: Live, backend: Backend) -> None:
    with live.run("ticket") as run:
        run.end(completed=False)
    (end,) = (event.data for event in backend.events if event.kind == "end")
    assert (end["status"], end["reason"], end["reply_chars"]) == ("failed", "incomplete", 0)
    assert "reply" not in end
    assert live.status().get("swallowed", {}) == {}


def test_without_texts_a_tool_without_an_error_has_none(live: Live, backend: Backend) -> None:
    silent = Live(load_live_config(live.config.path, {"text": "none"}, {}), backend)
    with silent.run("ticket") as run:
        for error in (None, "no such customer", KeyError("ann")):
            run.tool("search", error)
    found = [event.data["error"] for event in backend.events if event.kind == "tool"]
    assert found == [None, "error", "KeyError"]


def test_a_mark_that_fails_costs_no_choice(
    live: Live, backend: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = list[tuple[object, ...]]()

    def mark(*said: object, version: str) -> None:
        marked.append((*said[:1], version))
        if len(marked) == 2:
            raise RuntimeError("no span")

    monkeypatch.setitem(sys.modules, "opentelemetry.trace", sys.modules.get("opentelemetry.trace", sys))
    monkeypatch.setattr(backend, "mark", mark)
    with live.run("ticket") as run:
        for _ in range(2):
            assert run.choose("config").name == "learned"
    assert live.status()["swallowed"] == {"mark": 1}
    stamp = live.config.points["config"].stamps["learned"]
    assert marked == [("ticket", stamp)] * 2
    assert len(backend.events) == 4


@pytest.mark.parametrize("error", ["e" * 501, ValueError("e" * 600), ["e" * 600]])
def test_a_long_error_of_a_tool_is_cut(live: Live, backend: Backend, error: object) -> None:
    with live.run("ticket") as run:
        run.tool("n" * 300, error)
    (found,) = (event.data for event in backend.events if event.kind == "tool")
    assert (len(found["name"]), len(found["error"])) == (200, 500)
