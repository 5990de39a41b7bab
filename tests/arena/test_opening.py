"""How an arena opens: its contestants, the interrupted one to go on with, and what is on file of its cost."""

from __future__ import annotations

import json
import re
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.arena.results import arena_result
from support.builders import make_group, make_rollout
from support.sweeps import make_run

import pytest_tfgrpo
from pytest_tfgrpo.arena.bugs import OwnBugError, failure_of
from pytest_tfgrpo.arena.contestants.learned import Learned, Untrained
from pytest_tfgrpo.arena.opening import begun_arena, open_contestants
from pytest_tfgrpo.arena.plan_file import read_plan
from pytest_tfgrpo.arena.result import Side, has_ended, require_no_bug, write_result
from pytest_tfgrpo.arena.trained_side import SideCost, spending_of
from pytest_tfgrpo.core.errors import ResumeError, SettingError, StoreError
from pytest_tfgrpo.core.records import ModelCall, Usage

BEGUN: dict[str, Any] = {
    "optimizers": "none,heuristic",
    "budget_rollouts": 24,
    "budget_usd": 1.0,
    "suite": "s",
}
GIVEN: dict[str, Any] = {"optimizers": None, "budget_rollouts": None, "budget_usd": None, "suite": "."}


def arenas(home: Path, *names: str) -> Path:
    for name in names:
        (home / name).mkdir(parents=True)
        plan = {"schema": "tfgrpo.arena-plan/1", "started_at": "", "identity": {}, "arguments": BEGUN}
        (home / name / "plan.json").write_text(json.dumps(plan))
    return home


def test_an_arena_goes_on_by_its_id_or_is_the_latest_open_one(tmp_path: Path) -> None:
    home = arenas(tmp_path, *"abcdefg")
    (home / "g" / "arena.json").write_text("{")
    assert begun_arena(home, "latest", GIVEN) == (home / "f", BEGUN)
    assert begun_arena(home, "g", GIVEN) == (home / "g", BEGUN)
    assert begun_arena(home, "latest", BEGUN | {"budget_usd": 2.5})[1] == BEGUN | {"budget_usd": 2.5}
    for changes, flag in (
        ({"budget_rollouts": 25}, "--budget-rollouts"),
        ({"optimizers": "none"}, "--optimizers"),
        ({"suite": "t"}, "--suite"),
    ):
        with pytest.raises(SettingError, match=f"as the arena began; leave {flag} out"):
            begun_arena(home, "a", GIVEN | changes)
    with pytest.raises(
        ResumeError, match=re.escape(f"no arena 'x' in {home} (latest: c, d, e, f, g); leave")
    ):
        begun_arena(home, "x", GIVEN)
    with pytest.raises(ResumeError, match=r"no interrupted arena in .*nowhere \(latest: none\)"):
        begun_arena(home / "nowhere", "latest", GIVEN)


def test_an_arena_has_ended_unless_our_own_code_failed_in_it(tmp_path: Path) -> None:
    assert not has_ended(tmp_path)
    for bugs, ended in ((("", ""), True), (("", "Traceback"), False)):
        sides = [Side(name=f"s{n}", bug=bug) for n, bug in enumerate(bugs)]
        write_result(tmp_path, arena_result(sides))
        assert has_ended(tmp_path) is ended


@pytest.mark.parametrize("change", [{"schema": "tfgrpo.arena-plan/2"}, "started_at", "identity", "arguments"])
def test_a_plan_of_another_form_is_no_plan(tmp_path: Path, change: Any) -> None:
    folder = arenas(tmp_path, "a") / "a"
    plan = json.loads((folder / "plan.json").read_text())
    assert read_plan(folder) == plan
    changed = plan | change if isinstance(change, dict) else {k: v for k, v in plan.items() if k != change}
    for text in (json.dumps(changed), "[]", "{"):
        (folder / "plan.json").write_text(text)
        with pytest.raises(ResumeError, match=r"plan\.json cannot be read: .*; leave --resume out"):
            read_plan(folder)


def test_what_our_own_code_raised_is_told_without_secrets() -> None:
    said, bug = failure_of(raised(ValueError("password=hunter2hunter2"), OWN), by_hook=False)
    assert said == "a bug in pytest-tfgrpo, please report it: ValueError: password=[redacted:named]"
    assert "ValueError: password=[redacted:named]" in bug


def test_each_side_that_our_own_code_broke_is_told() -> None:
    sides = [Side(name=name, bug=bug) for name, bug in (("a", "one"), ("b", ""), ("c", "two"))]
    with pytest.raises(OwnBugError, match=r"^a failed\none\nc failed\ntwo$"):
        require_no_bug(arena_result(sides))


def test_contestants_are_opened_in_the_order_of_the_command() -> None:
    hook: Any = object()
    found = open_contestants(["mine", "placebo", "none"], {"mine": hook, "none": hook})
    assert list(found) == ["mine", "placebo", "none"]
    assert isinstance(found["mine"], Learned)
    assert isinstance(found["none"], Untrained)
    assert found["placebo"] is None
    for names, told in (
        (["none"], "needs two names or more"),
        (["none", "few-shot", "placebo"], "none of them learns lessons; add heuristic or llm"),
        (["none", "zzzzzzzz"], "there are none, "),
        (["none", "zzzzzzzz"], ", placebo, and those of the hook"),
    ):
        with pytest.raises(SettingError, match=re.escape(told)):
            open_contestants(names, {})


def call(key: str, purpose: str = "learn", cost_usd: float | None = 0.25) -> ModelCall:
    known: dict[str, Any] = {"epoch": 1, "subject": "", "model": "m", "fingerprint": "f", "prompt": "p"}
    return ModelCall(
        key=key, purpose=purpose, usage=Usage(prompt=2, completion=1), cost_usd=cost_usd, **known
    )


def test_what_a_side_spent_is_all_that_its_runs_did() -> None:
    run = make_run(train={"t": [1, 0]})
    (phase,) = run.phases
    dev = make_group([1.0], scenario_id="d")
    loose = make_rollout(9, cost_usd=0.5, tokens=7)
    calls = (call("e1.learn.t"), call("hello.teacher"), call("e1.judge.t", "judge"))
    spent = replace(run, phases=(replace(phase, dev=(dev,), loose=(loose,), calls=calls),))
    found = SideCost(rollouts=3, teacher_calls=1, usd=1.252, known_usd=1.252, tokens=222)
    assert spending_of([spent], free=False) == found
    twice = SideCost(rollouts=6, teacher_calls=2, usd=2.504, known_usd=2.504, tokens=444)
    assert spending_of([spent, spent], free=False) == twice
    unknown = replace(run, phases=(replace(spent.phases[0], calls=(*calls, call("x", cost_usd=None))),))
    for free, usd in ((False, None), (True, 1.252)):
        assert spending_of([unknown], free=free) == replace(found, teacher_calls=2, usd=usd, tokens=225)


OWN = Path(pytest_tfgrpo.__file__).parent / "some.py"
PYTHON = Path(sysconfig.get_path("stdlib"))
LIBRARY, HOOK = PYTHON / "site-packages" / "some.py", Path("/project/hook.py")


def raised(error: Exception, *files: Path) -> Exception:
    """Return an error as code of the last of `files` raises it, called by that of the one before."""

    def fail() -> None:
        raise error

    at: dict[str, Any] = {"call": fail}
    for path in reversed(files):
        at = {"inner": at["call"]}
        exec(compile("def call():\n    inner()", str(path), "exec"), at)
    try:
        at["call"]()
    except Exception as caught:
        trace = caught.__traceback__
        assert trace is not None
        last = trace.tb_next
        for _ in files[1:]:
            assert last is not None
            last = last.tb_next
        assert last is not None
        last.tb_next = None
        return caught.with_traceback(trace.tb_next)
    raise AssertionError


@pytest.mark.parametrize(
    ("files", "bug", "by_hook"),
    [
        ([OWN], True, True),
        ([OWN, PYTHON / "json" / "decoder.py"], True, True),
        ([OWN, Path("<frozen importlib>")], True, True),
        ([OWN, LIBRARY], False, False),
        ([OWN, HOOK, OWN], True, False),
        ([OWN, HOOK], False, False),
        ([PYTHON / "json" / "decoder.py"], False, False),
    ],
)
def test_an_error_is_a_bug_where_our_own_code_raised_it(files: list[Path], bug: bool, by_hook: bool) -> None:
    assert bool(failure_of(raised(ValueError("no"), *files), by_hook=False)[1]) is bug
    assert bool(failure_of(raised(ValueError("no"), *files), by_hook=True)[1]) is by_hook
    assert failure_of(raised(OSError("no"), *files), by_hook=False)[1] == ""
    told = raised(StoreError("no"), *files)
    assert failure_of(told, by_hook=False)[1] == ""
    told.__cause__ = raised(ValueError("no"), *files)
    assert bool(failure_of(told, by_hook=False)[1]) is bug
    around = raised(StoreError("no"), *files)
    around.__cause__ = told
    assert bool(failure_of(around, by_hook=False)[1]) is bug
