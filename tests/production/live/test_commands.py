"""The commands ``tfgrpo live ...``, on a store that an application has filled."""

import json
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from support.live_events import counting
from support.live_runs import rollout
from support.tools import tfgrpo

from pytest_tfgrpo.cli.live.open_live import open_live
from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.production.live.drafts import ScenarioDraft, draft_text, drafts_of
from pytest_tfgrpo.production.live.records import ArmChoice
from pytest_tfgrpo.production.live.report import status_lines
from pytest_tfgrpo.production.live.selection.guard import Guard
from pytest_tfgrpo.production.live.store.store import open_live_store
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.collection import collect
from pytest_tfgrpo.suite.scenario_files import load_scenarios

CONFIG = """
[settings]
enabled = true
namespace = "shop"
inference = "outcome_v1"

[points.config]
default = "bare"
[points.config.arms.bare]
[points.config.arms.warm]
temperature = 0.7
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in which warm answers to refunds are good, and bare ones to questions."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "live.toml").write_text(CONFIG)
    with open_live(folder / "live.toml") as live:
        for n in range(160):
            category = ("refund", "question")[n % 2]
            with live.run(f"ticket-{n}", category=category, prompt=f"My {category}, order {n}") as run:
                good = (run.choose("config").name == "warm") == (category == "refund")
                for _ in range(1 if good else 5):
                    run.turn()
                run.end(f"done {n}", score=float(good))
            if n % 8 == 7:
                live.flush()
        with suppress(OSError), live.run("ticket-bad", category="refund", prompt="x") as run:
            run.choose("config")
            raise OSError("the model is away")
    return folder


@pytest.fixture
def project(served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "copy"
    shutil.copytree(served, folder)
    monkeypatch.chdir(folder)
    return folder


def test_the_status_says_what_was_learned(project: Path) -> None:
    out = tfgrpo("live", "status")
    assert "gate       passes" in out
    assert "160 succeeded, 1 failed, 0 cancelled, 0 running" in out
    assert "the model stays as it is" in out
    status = json.loads(tfgrpo("live", "status", "--json"))
    assert status["weights_applied"] is False
    assert status["last_update"]["weights_applied"] is False
    learned = status["probabilities"]["config"]
    assert learned["refund"]["warm"] > 0.7
    assert learned["question"]["bare"] > 0.7
    assert status["updates"]["executed"] == status["selector"] >= 4


def test_the_status_of_a_process_is_that_of_the_command(project: Path) -> None:
    with open_live() as live:
        own = live.status()
    printed = json.loads(tfgrpo("live", "status", "--json"))
    assert {key: own[key] for key in printed} == printed


def test_the_status_says_why_the_last_update_learned_nothing(tmp_path: Path) -> None:
    (tmp_path / "live.toml").write_text(CONFIG)
    with open_live(tmp_path / "live.toml") as live:
        for n in range(12):
            with live.run(f"ticket-{n}") as run:
                run.choose("config")
                run.end("done", score=1.0)
        live.flush()
        lines = [*status_lines(live.status())]
    assert "           the last one learned nothing: all rewards were equal (zero_variance)" in lines


def test_runs_that_no_update_learns_from_are_counted_by_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "live.toml").write_text(CONFIG)
    open_live(tmp_path / "live.toml").close()
    assert "left out" not in tfgrpo("live", "status")
    store = open_live_store(tmp_path / "live.db", "shop")
    nothing, _ = counting([], 0, None)
    for left_out in ({"stale": 5, "unknown_arm": 2}, {"stale": 3, "no_outcome": 1}):
        report = replace(nothing, left_out=left_out)
        assert store.update(lambda *_: (report, None), limit=8, outcome_wait_s=0, now=1, due=0)  # noqa: B023
    store.close()
    status = json.loads(tfgrpo("live", "status", "--json"))
    assert status["left_out"] == {"no_outcome": 1, "stale": 8}, "those of another process's arms wait"
    out = tfgrpo("live", "status")
    assert "\nleft out   no_outcome 1, stale 8\n" in out
    assert "it had no run that it could use (no_trajectories); left out: stale 3, no_outcome 1\n" in out
    assert "\nleft out of all updates: no_outcome 1, stale 8\n" in tfgrpo("live", "report")


def test_a_reset_needs_an_actor_and_a_reason_and_is_kept(project: Path) -> None:
    assert "required: --reason" in tfgrpo("live", "reset", "--actor", "ada", code=2)
    assert "needs an actor and a reason" in tfgrpo("live", "reset", "--actor", " ", "--reason", "x", code=1)
    out = tfgrpo("live", "reset", "--actor", "ada", "--reason", "looked at it")
    assert out == "gate       passes, reset by ada: looked at it; it did not hold\n"
    assert "reset by ada: looked at it" in tfgrpo("live", "status")


def test_a_gate_that_holds_says_why_and_how_it_is_released(project: Path) -> None:
    store = open_live_store(project / "live.db", "shop")
    for n in range(3):
        store.change_gate(lambda state: Guard().failed(state, "disk \x1b[31mfull", 1e9), now=1e9 + n)
    store.close()
    status = tfgrpo("live", "status")
    assert "gate       holds: failures since 2001-09-09 01:46:40 UTC; 3 failures in a row\n" in status
    assert "last error disk full\n" in status
    assert "`tfgrpo live reset` releases it" in status
    with open_live() as live, live.run("held") as run:
        assert run.choose("config").name == "bare"
    out = tfgrpo("live", "reset", "--actor", "ada", "--reason", "new disk")
    assert out.endswith("new disk; it held by failures\n")
    with open_live() as live, live.run("released") as run:
        run.choose("config")
    assert "161 succeeded" in tfgrpo("live", "status")


def test_of_a_store_without_runs_the_commands_say_so_and_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "live.toml").write_text(CONFIG)
    open_live(tmp_path / "live.toml").close()
    assert tfgrpo("live", "report") == "no runs yet; the application reports them with live.run(...)\n"
    assert tfgrpo("live", "drafts", "--into", "drafts").startswith("no run has a prompt and a reward")
    assert not (tmp_path / "drafts").exists()


def test_without_a_store_the_commands_say_how_one_comes_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "there is no live store live.db yet; it is made by" in tfgrpo("live", "status", code=1)
    (tmp_path / "live.toml").write_text("[settings]\nstore = 'none'")
    assert "is kept in memory; call live.status()" in tfgrpo("live", "status", code=1)
    assert not (tmp_path / "live.db").exists()


def test_the_report_says_what_the_selector_brings_and_how_categories_fare(project: Path) -> None:
    out = tfgrpo("live", "report")
    found = re.search(r"^score: selector \S+ in (\d+) runs, control \S+ in (\d+); difference", out, re.M)
    assert found is not None
    assert sum(map(int, found.groups())) == 161, "a run that failed has the score 0"
    assert re.search(r"^trace reward and score: rank correlation 1.00 over 160 runs$", out, re.MULTILINE)
    assert re.search(r"^question +80 ", out, re.MULTILINE)
    assert re.search(r"^\d+ +\d+ to \d+ ", out, re.MULTILINE)


@pytest.mark.parametrize("keys", [3, 20])
def test_runs_that_share_a_few_keys_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "live.toml").write_text(CONFIG)
    with open_live(tmp_path / "live.toml") as live:
        for n in range(30):
            with live.run(f"user-{n % keys}") as run:
                run.choose("config")
    warning = "warning: 30 runs have only 3 keys; give each run a key of its own, as its arm is drawn from it"
    assert (warning in tfgrpo("live", "report").splitlines()) == (keys == 3)


def test_a_policy_is_valued_by_the_runs_there_were(project: Path) -> None:
    out = tfgrpo("live", "evaluate", "--policy", "uniform", "--quantity", "score")
    assert "score of uniform at config, from 161 runs\n" in out
    value = re.search(r"^snips +(0\.\d+) ", out, re.MULTILINE)
    assert value is None or abs(float(value[1]) - 0.5) < 0.25
    assert value is not None or "snips  not estimable: " in out
    assert "score of selector:1" in tfgrpo(
        "live", "evaluate", "--policy", "selector:1", "--quantity", "score", "--point", "config"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "arm:barre"], "no arm 'barre'; there are bare, warm; did you mean 'bare'"),
        (["--policy", "selector:999"], "no selector 999 in the store"),
        (["--policy", "best"], "no policy 'best'; use arm:NAME, selector:N or uniform"),
        (["--policy", "uniform", "--point", "confg"], "no point is called 'confg'; did you mean 'config'"),
    ],
)
def test_a_policy_or_point_that_there_is_not_is_named(
    project: Path, arguments: list[str], message: str
) -> None:
    assert message in tfgrpo("live", "evaluate", *arguments, code=1)


def test_drafts_are_scenarios_once_a_person_adds_checks(project: Path) -> None:
    out = tfgrpo("live", "drafts", "--into", "drafts", "--most", "3")
    drafts = sorted(Path("drafts").iterdir())
    assert [f"wrote  {path}" for path in drafts] == sorted(out.splitlines()[:-1])
    assert all(path.name.endswith(".scenario.draft.yaml") for path in drafts)
    with pytest.raises(ScenarioError, match="no scenario was found"):
        collect(project, ["drafts"], KINDS)
    assert tfgrpo("live", "drafts", "--into", "drafts", "--most", "3") == "kept   3 that exist\n"
    done = Path("done.scenario.yaml")
    for path in drafts:
        draft = path.read_text()
        done.write_text(draft)
        with pytest.raises(ScenarioError, match="checks"):
            load_scenarios(done, root=project, kinds=KINDS)
        done.write_text(re.sub(r"^  # (checks:|- kind|  value)", r"  \1", draft, flags=re.MULTILINE))
        (scenario,) = load_scenarios(done, root=project, kinds=KINDS)
        assert scenario.prompt.startswith("My ")
        assert scenario.domain in ("refund", "question")


HOSTILE = 'a"\n- id: b\n# \x00\x07\x85\u2028\U0001f600 \\ \x7f {{ }} : | > % @ `\ttab'


def test_a_draft_of_a_hostile_prompt_is_one_scenario_with_that_prompt(tmp_path: Path) -> None:
    run = replace(rollout(1, [], 0.0), prompt=HOSTILE, reply="x\n- id: c\n\x1b[31m")
    text = draft_text(ScenarioDraft(rollout=run, reward=-1.0, advantage=-1.5))
    path = tmp_path / "x.scenario.yaml"
    path.write_text(text.replace("  # checks:\n", "  checks: [{kind: contains, value: x}]\n"))
    (scenario,) = load_scenarios(path, root=tmp_path, kinds=KINDS)
    assert scenario.prompt == HOSTILE


def test_the_largest_advantages_come_first_and_a_prompt_once() -> None:
    scores = [("a", "p1", 0.8), ("a", "p2", 0.6), ("a", "p3", 0.0), ("b", "p4", 0.0), ("a", "p3", 0.1)]
    runs = [
        replace(rollout(n, [], score, category=category), prompt=prompt)
        for n, (category, prompt, score) in enumerate(scores, 1)
    ]
    assert [draft.rollout.prompt for draft in drafts_of(runs, 10)] == ["p1", "p3", "p2"]
    assert [draft.rollout.sequence for draft in drafts_of(runs, 1)] == [1]
    assert drafts_of([replace(run, prompt=None) for run in runs], 10) == []


@pytest.mark.parametrize(
    ("taken", "told"), [({}, "none"), ({"config": "warm", "tone": "dry"}, "config=warm, tone=dry")]
)
def test_a_draft_names_the_arms_of_its_run(taken: dict[str, str], told: str) -> None:
    choices = [
        ArmChoice(point=point, place=n, arm=arm, arms={}, probabilities={}, selector=0)
        for n, (point, arm) in enumerate(taken.items())
    ]
    run = replace(rollout(1, choices, 0.5), prompt="p")
    assert told in draft_text(ScenarioDraft(rollout=run, reward=0.5, advantage=0.25))


def test_choices_are_exported_with_context_arms_propensity_and_reward(project: Path) -> None:
    rows = [json.loads(row) for row in tfgrpo("live", "export").splitlines()]
    assert len(rows) == 161
    for row in rows:
        assert row["schema"] == "tfgrpo.live-choice/1"
        assert row["propensity"] == row["probabilities"][row["arm"]]
        assert row["arms"].keys() == row["probabilities"].keys() == {"bare", "warm"}
        assert abs(sum(row["probabilities"].values()) - 1) < 1e-9
        assert row["reward"] == 1.75 * (row["score"] or 0) - 0.75
        assert not row["control"] or (row["arm"], row["propensity"]) == ("bare", 1.0)


def test_of_many_categories_the_report_shows_those_with_most_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with open_live(enabled=True) as live:
        for n in range(26):
            with live.run(f"ticket-{n}", category=f"kind-{n % 25:02}") as run:
                run.end("r")
    rows = [
        row.split()[0] for row in tfgrpo("live", "report").splitlines() if row.startswith(("kind", "..."))
    ]
    assert rows == [*(f"kind-{n:02}" for n in range(20))] * 2 + ["..."]
    assert "kind" not in tfgrpo("live", "report", "--last", "0")
