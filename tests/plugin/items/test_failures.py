"""When an item fails, and what its text says."""

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.builders import make_group, make_rollout, make_scenario

from pytest_tfgrpo.core.records import CheckerResult, Failure, Group, Mode
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.plugin.items import failures
from pytest_tfgrpo.plugin.items.failures import ItemFailed, ItemNotRun
from pytest_tfgrpo.plugin.start.options import SETTINGS

FAULT = Failure(code="auth", message="no such key")


def configured(root: Path, learning: bool = False, **flags: Any) -> Any:
    config = SimpleNamespace(stash=pytest.Stash(), rootpath=root)
    config.stash[SETTINGS] = resolve(
        flags, {"TFGRPO_EPOCHS": "3"}, {"group_size": "4"}, learning_flag=learning
    )
    return config


@pytest.mark.parametrize(
    ("learning", "flags", "command"),
    [
        (False, {}, "pytest 'a.yaml::a b[epoch1]'"),
        (True, {"seed": "7"}, "pytest --tfgrpo --tfgrpo-seed=7 'a.yaml::a b[epoch1]'"),
        (
            False,
            {"baseline": "none", "task_id": "demo", "actor": "command:my agent"},
            "pytest '--tfgrpo-actor=command:my agent' --tfgrpo-task-id=demo --tfgrpo-baseline=none "
            "'a.yaml::a b[epoch1]'",
        ),
    ],
)
def test_an_item_is_run_again_with_the_flags_of_its_command(
    tmp_path: Path, learning: bool, flags: dict[str, Any], command: str
) -> None:
    """What the environment and the ini file say holds for the next command too."""
    assert failures.rerun_command(configured(tmp_path, learning, **flags), "a.yaml::a b[epoch1]") == command


@pytest.mark.parametrize(
    ("scores", "mode", "own", "least", "fails"),
    [
        ([0.5, 0.5], "eval", 0.5, None, False),
        ([0.5, 0.4], "eval", 0.5, None, True),
        ([0.5, 0.4], "baseline", 0.5, None, True),
        ([0.5, 0.4], "train", 0.5, None, False),
        ([0.5, 0.4], "dev", 0.5, 1.0, False),
        ([0.5, 0.4], "eval", None, None, False),
        ([0.5, 0.4], "eval", None, 0.5, True),
        ([0.5, 0.4], "eval", 0.0, 1.0, False),
        ([None, 0.0], "eval", None, None, False),
        ([None, None], "train", None, None, True),
    ],
)
def test_a_group_fails_below_the_least_of_its_scenario_or_where_all_of_it_errored(
    tmp_path: Path,
    scores: list[float | None],
    mode: Mode,
    own: float | None,
    least: float | None,
    fails: bool,
) -> None:
    scenario, group = make_scenario(min_score=own), make_group(scores, mode=mode)
    with pytest.raises(ItemFailed, match="a::a") if fails else nullcontext():
        failures.judge_group(configured(tmp_path), scenario, group, "a::a", why="", least=least)


@pytest.mark.parametrize(
    ("uses", "mark", "status", "told"),
    [
        (["rollout", "monkeypatch"], {}, "failed", True),
        (["rollout", "mocker"], {}, "failed", True),
        (["rollout", "monkeypatch"], {"fixtures": ["db"]}, "failed", False),
        (["rollout"], {}, "failed", False),
        (["rollout", "monkeypatch"], {}, "ok", False),
    ],
)
def test_a_patch_that_comes_after_the_agent_is_told(
    tmp_path: Path, uses: list[str], mark: dict[str, Any], status: Any, told: bool
) -> None:
    item: Any = SimpleNamespace(
        config=configured(tmp_path),
        nodeid="test_a.py::test_a",
        fixturenames=uses,
        get_closest_marker=lambda _: pytest.mark.tfgrpo(**mark).mark,
    )
    fault = Failure(code="crash", message="boom") if status == "failed" else None
    rollout = make_rollout(status=status, failure=fault)
    with pytest.raises(failures.MarkedFailed) as failed:
        failures.fail_marked(item, make_scenario(), rollout, "why", None)
    assert told == ("the agent ran before the body of this function" in str(failed.value))


def test_a_scenario_without_a_group_did_not_run_and_says_why(tmp_path: Path) -> None:
    with pytest.raises(ItemNotRun, match=r"^count-words did not run to the end: the budget is used up$"):
        failures.judge_group(configured(tmp_path), make_scenario(), None, "a::a", why="the budget is used up")


def test_an_error_that_many_items_have_is_told_whole_once(tmp_path: Path) -> None:
    """Where a run has no folder, each says all of it: there is nothing to look at."""

    def text(config: Any, node: str, message: str = "no such key") -> str:
        failure = Failure(code="auth", message=message)
        group: Group = make_group([None], rollouts=(make_rollout(credit=None, failure=failure),))
        with pytest.raises(ItemFailed) as failed:
            failures.judge_group(config, make_scenario(), group, node, why="")
        return str(failed.value)

    config = configured(tmp_path, out="out")
    assert "run it again: pytest --tfgrpo-out=out a::a" in text(config, "a::a")
    assert "the same as a::a; see it in full: tfgrpo show run1.e1.count-words.r0" in text(config, "a::b")
    assert "the same as" not in text(config, "a::a")
    assert "the same as" not in text(config, "a::c", "another")
    scored = make_group([0.0], mode="eval", rollouts=(make_rollout(0, 0.0, failure=FAULT),))
    for node in ("a::a", "a::b"):
        with pytest.raises(ItemFailed) as low:
            failures.judge_group(config, make_scenario(min_score=1.0), scored, node, why="")
        assert "the same as" not in str(low.value)
    nowhere = configured(tmp_path)
    assert [("the same as" in text(nowhere, node)) for node in ("a::a", "a::b")] == [False, False]


@pytest.mark.parametrize(
    ("flags", "ends"), [({}, ["fail", "skip", "fail"]), ({"gate_min_mean": ".5"}, ["skip"] * 3)]
)
def test_of_items_that_did_not_run_the_first_fails_unless_a_gate_does(
    tmp_path: Path, flags: dict[str, Any], ends: list[str]
) -> None:
    config, found = configured(tmp_path, **flags), []
    for node in ("a::a", "a::b", "a::a"):
        item: Any = SimpleNamespace(config=config, nodeid=node)
        with pytest.raises((pytest.skip.Exception, pytest.fail.Exception), match=r"^no budget$") as ended:
            failures.end_unrun(item, ItemNotRun("no budget"))
        found.append("skip" if ended.type is pytest.skip.Exception else "fail")
    assert found == ends


def test_junit_has_the_figures_of_a_group() -> None:
    item: Any = SimpleNamespace(user_properties=[("mine", 1)], stash=pytest.Stash())
    rollouts = tuple(
        make_rollout(n, 0.0, epoch=3, mode="eval", latency_ms=latency, status=status)
        for n, (status, latency) in enumerate((("ok", 1.0), ("failed", 2.0), ("error", 5.0005)))
    )
    failures.note_group(item, make_group([1.0, 0.0, None], rollouts=rollouts))
    assert item.user_properties == [
        ("mine", 1),
        ("tfgrpo_group", "run1.e3.count-words"),
        ("tfgrpo_epoch", 3),
        ("tfgrpo_mode", "eval"),
        ("tfgrpo_n", 2),
        ("tfgrpo_errors", 1),
        ("tfgrpo_gt_mean", 0.5),
        ("tfgrpo_latency_ms", 2.667),
    ]
    assert item.stash[failures.TOOK_S] == pytest.approx(0.0080005)


@pytest.mark.parametrize(("outcome", "score"), [("score", 0.25), ("error", None), ("skip", None)])
def test_junit_has_the_score_of_a_rollout_that_has_one(outcome: Any, score: float | None) -> None:
    item: Any = SimpleNamespace(user_properties=[], stash=pytest.Stash())
    failures.note_rollout(item, make_rollout(2), CheckerResult(outcome=outcome, score=0.25))
    assert item.user_properties == [
        ("tfgrpo_rollout", "run1.e1.count-words.r2"),
        ("tfgrpo_score", score),
        ("tfgrpo_latency_ms", 1.0),
    ]
    assert item.stash[failures.TOOK_S] == 0.001
