"""Learning mode: pytest --tfgrpo."""

import json
from collections import Counter
from xml.etree import ElementTree

import pytest
from support.project import Project, item_names

from pytest_tfgrpo.suite.scenario import split_of


def test_scenarios_become_items_in_epoch_order_and_the_gate_is_last(project: Project) -> None:
    result = project.scenarios(train=2, sweep=1).learn("-v")
    assert item_names(result) == [
        "suite.scenario.json::suite-train0[epoch1]",
        "suite.scenario.json::suite-train1[epoch1]",
        "suite.scenario.json::suite-train0[epoch2]",
        "suite.scenario.json::suite-train1[epoch2]",
        "suite.scenario.json::suite-eval0[baseline]",
        "suite.scenario.json::suite-eval0[epoch3-eval]",
        "pytest.ini::gate",
    ]


def test_learning_shows_as_a_gain_and_leaves_its_files(project: Project) -> None:
    project.pages().ini(actor="python:agent:learner", group_size=4).scenarios(train=12, sweep=12)
    result = project.learn()
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["*epoch1*", "*baseline*", "*epoch3-eval*", "*gate*passed*", "*gain*+0.*", "*files*out*"]
    )
    folder = project.runs()[-1]
    assert {p.name for p in folder.iterdir()} == {
        "exposures.jsonl",
        "journal.jsonl",
        "manifest.json",
        "metrics.jsonl",
        "per-epoch.json",
        "report.html",
        "report.json",
    }
    assert {p.name for p in folder.parent.parent.iterdir()} == {"experiences.jsonl", "library.json", "runs"}
    assert project.manifest()["status"] == "complete"
    assert all(len(e["summary32"].split()) <= 32 for e in project.manifest()["tfgrpo"]["experiences"])


def test_both_controls_have_items_and_print_the_drift(project: Project) -> None:
    project.scenarios(train=12, sweep=12).write(
        "test_agent.py",
        """
import pytest

@pytest.mark.tfgrpo(domain="text", split="eval", prompt="How many words has 'a b c'?")
def test_sweep(rollout):
    assert rollout.answer == "3"
""",
    )
    project.ini(actor="python:agent:learner", group_size=4, baseline_sweep="both")
    result = project.learn("-v")
    items = item_names(result)
    assert items[0] == "suite.scenario.json::suite-eval0[early]"
    assert [name for name in items if "test_sweep" in name] == [
        "test_agent.py::test_sweep[tfgrpo-early-r0]",
        *(f"test_agent.py::test_sweep[tfgrpo-baseline-r{n}]" for n in range(3)),
        *(f"test_agent.py::test_sweep[tfgrpo-epoch3-eval-r{n}]" for n in range(4)),
    ]
    result.stdout.fnmatch_lines(["drift  * without new lessons*", "early *0.3 *13 *", "baseline *0.3 *39 *"])
    assert project.cli("report") == 0
    assert [row["mode"] for row in project.report()["epochs"]] == [
        "early",
        "baseline",
        "train",
        "train",
        "eval",
    ]


def test_both_controls_need_four_rollouts_of_a_sweep(project: Project) -> None:
    result = project.scenarios().ini(group_size=2, eval_rollouts=3, baseline_sweep="both").learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*'both' runs a quarter of the 3 rollouts early (ini key *); set eval_rollouts to at least 4*"]
    )


def test_the_feature_variable_switches_learning_on(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEATURE_TFGRPO_GROUP", "1")
    project.scenarios().run("-v").stdout.fnmatch_lines(["*[[]epoch1[]]*"])


def test_a_gate_that_finds_a_loss_turns_the_run_red(project: Project) -> None:
    project.ini(actor="python:agent:unlearner", group_size=4).scenarios(train=12, sweep=12)
    result = project.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=48, failed=1)
    result.stdout.fnmatch_lines(["gain: *", "gate  FAILED, as shown above"])


def test_a_learning_item_fails_only_if_its_whole_group_errored(project: Project) -> None:
    project.scenarios(train=1, sweep=0).ini(actor="python:agent:wrong", group_size=2)
    project.learn().assert_outcomes(passed=3)
    project.ini(actor="python:agent:provider", group_size=2)
    result = project.learn()
    result.assert_outcomes(failed=2, skipped=1)
    result.stdout.fnmatch_lines(["*every rollout is an error*"])


def test_the_header_names_who_takes_part(project: Project) -> None:
    project.scenarios().ini(actor="python:agent:right", optimizer="none")
    head = ["tfgrpo: actor python:agent:right, optimizer none, group size 2, 3 epochs, seed 0"]
    project.learn("--tfgrpo-group-size", "2").stdout.fnmatch_lines(head)


def test_an_error_that_many_items_share_is_told_once(project: Project) -> None:
    project.scenarios(train=1, sweep=3).ini(
        actor="python:agent:provider", group_size=2, baseline_sweep="early"
    )
    result = project.learn("-rf")
    shown = result.stdout.str()
    assert shown.count("\nprompt:\n") == 1
    assert (
        shown.count("\nthe same as suite.scenario.json::suite-eval0[baseline]; see it in full: tfgrpo show ")
        == 2
    )
    result.stdout.fnmatch_lines(["suite-eval2: every rollout is an error: provider: *"])


def test_an_eval_item_fails_below_min_score_only_where_the_scenario_sets_it(project: Project) -> None:
    project.scenarios("free", train=1, sweep=1).scenarios("strict", train=0, sweep=1, min_score=0.5)
    result = project.ini(actor="python:agent:wrong", group_size=2).learn("-rf")
    result.assert_outcomes(passed=5, failed=2)
    result.stdout.fnmatch_lines(["FAILED strict.scenario.json::strict-eval0*"])


@pytest.mark.parametrize(
    "choice",
    [
        ("-k", "eval0 and epoch3"),
        ("suite.scenario.json::suite-eval0[baseline]",),
        ("suite.scenario.json::suite-eval0",),
    ],
)
def test_choosing_any_item_brings_its_whole_scenario(project: Project, choice: tuple[str, ...]) -> None:
    result = project.scenarios().learn("-v", *choice)
    assert item_names(result) == [
        "suite.scenario.json::suite-eval0[epoch3-eval]",
        "pytest.ini::gate",
    ]


def test_nothing_is_swept_twice_without_training_between(project: Project) -> None:
    result = project.scenarios(train=0, sweep=3).ini(actor="python:agent:right", group_size=2).learn("-v")
    assert [row["mode"] for row in project.report()["epochs"]] == ["eval"]
    assert len(project.calls) == 6
    result.stdout.fnmatch_lines(["*skipped*gain: no train scenario, so nothing was learned and one sweep*"])
    project.write(
        "suite.scenario.json", (project.root / "suite.scenario.json").read_text().replace("eval", "train")
    )
    result = project.learn()
    assert [row["mode"] for row in project.report()["epochs"]] == ["train", "train"]
    result.stdout.fnmatch_lines(
        ["gate  inconclusive*", "*not checked*gain: no eval scenario, so nothing was measured*"]
    )


def test_a_split_by_hash_is_said_with_its_counts(project: Project) -> None:
    tasks = [
        {"id": f"t{n}", "prompt": f"Letter {n}: a b c?", "checks": [{"kind": "exact", "value": "3"}]}
        for n in range(12)
    ]
    project.write("hashed.scenario.json", json.dumps(tasks))
    splits = Counter(split_of(task["id"]) for task in tasks)
    line = (
        f"a hash chose the split of the 12 scenarios that name none: {splits['train']} train, "
        f"{splits['eval']} eval"
    )
    project.learn().stdout.fnmatch_lines([line])
    assert project.report()["sections"] == [line]
    project.write("hashed.scenario.json", json.dumps([task | {"split": "eval"} for task in tasks]))
    project.learn().stdout.no_fnmatch_line("a hash chose*")


def test_the_gate_does_not_pass_a_partial_selection(project: Project) -> None:
    project.scenarios(train=2, sweep=12).learn()
    assert project.cli("baseline", "save", "main") == 0
    result = project.learn("-k", "eval0 or train", "--tfgrpo-baseline", "main")
    result.stdout.fnmatch_lines(["*not checked*"])
    assert project.report()["gate"]["outcome"] != "pass"


def test_collecting_only_runs_nothing(project: Project) -> None:
    result = project.scenarios().ini().learn("--co", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*suite-train0[[]epoch1[]]*", "*pytest.ini::gate*"])
    assert project.calls == []
    assert not (project.root / "out").exists()


def test_an_epoch_draws_sample_size_scenarios_and_logs_the_draw(project: Project) -> None:
    project.scenarios(train=10, sweep=1).ini(actor="python:agent:half", sample_size=3)
    result = project.learn()
    result.assert_outcomes(passed=9, deselected=14)
    draws = project.manifest()["draws"]
    assert draws["epoch1"]["n"] == draws["epoch2"]["n"] == 3
    assert draws["epoch1"]["scenarios"] != draws["epoch2"]["scenarios"]


def test_a_used_up_budget_closes_the_gate(project: Project) -> None:
    project.scenarios().ini(actor="python:agent:slow", budget_s=0.05, concurrency=1, group_size=8)
    result = project.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*budget_s*"])
    assert project.manifest()["status"] == "incomplete"


def test_last_failed_reruns_the_scenario_that_failed(project: Project) -> None:
    project.scenarios("good", train=0, sweep=1)
    project.scenarios("bad", train=0, sweep=1, checks=[{"kind": "exact", "value": "4"}], min_score=1.0)
    run = project.pytester.runpytest_inprocess
    assert run("--tfgrpo").ret == 1
    result = run("--tfgrpo", "--lf", "-v")
    assert [n for n in item_names(result) if "good" in n] == []
    assert "bad.scenario.json::bad-eval0[epoch3-eval]" in item_names(result)
    run("--tfgrpo", "--ff", "-v").stdout.fnmatch_lines(["*pytest.ini::gate*", "*= tfgrpo =*"])


def test_reruns_return_the_recorded_group(project: Project) -> None:
    project.scenarios(train=0, sweep=1, min_score=1.0).ini(actor="python:agent:wrong", group_size=2)
    result = project.plugins("rerunfailures").learn("--reruns", "3")
    result.stdout.fnmatch_lines(["*rerun*"])
    assert len(project.calls) == 2


def test_real_latencies_go_to_junit_properties(project: Project) -> None:
    project.scenarios(train=1, sweep=1).learn("--junitxml=out.xml")
    cases = ElementTree.parse(project.root / "out.xml").getroot().iter("testcase")
    found = {case.get("name"): {p.get("name") for p in case.iter("property")} for case in cases}
    assert "tfgrpo_latency_ms" in found["suite-train0[epoch1]"]
    assert "tfgrpo_gate" in found["gate"]


def test_a_dry_run_prints_the_plan_pays_nothing_and_needs_no_key(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    models = ("--tfgrpo-optimizer=llm", "--tfgrpo-teacher=openai:m", "--tfgrpo-judge=openai:m")
    result = project.scenarios(train=3, sweep=2).learn("--tfgrpo-dry-run", *models)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["*epoch1*", "baseline * 2 * 2 * up to 4", "total * 16 to 20"])
    assert project.calls == []
    assert not (project.root / "out").exists()


def test_a_dry_run_says_what_the_actor_declares_as_its_most(project: Project) -> None:
    actor = """
class Dear:
    name, paid, identity = "dear", True, {}

    async def __call__(self, call):
        raise AssertionError("it was asked")

    def bound(self, calls):
        return {"usd": 0.5 * calls, "tokens": 1000 * calls}

    async def aclose(self):
        pass

def pytest_tfgrpo_actor(spec):
    return Dear() if spec == "dear" else None
"""
    project.scenarios(train=3, sweep=2).conftest(actor).ini(actor="dear", group_size=4)
    result = project.learn("--tfgrpo-dry-run")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "3 train and 2 eval scenarios; 0 lessons at the start",
            "epoch1 * 3 * 4 * 12",
            "baseline * 2 * 4 * up to 8",
            "total * 32 to 40",
            "cost    at most $20.00",
            "tokens  at most 40.0k",
        ]
    )


def test_metrics_have_a_line_per_call_and_per_rollout_and_the_manifest_tells_what_was_run(
    project: Project,
) -> None:
    project.scenarios(train=12, sweep=2).ini(actor="python:agent:learner", group_size=4)
    project.learn()
    text = (project.runs()[-1] / "metrics.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    keys = ["epoch", "mode", "group_id", "rollout_id", "tool", "tokens", "cost_usd", "latency_ms"]
    assert all(list(line) == keys for line in lines)
    assert [line["epoch"] for line in lines if line["mode"] == "train"] == [1] * 96 + [2] * 96
    assert {line["epoch"] for line in lines[192:]} == {0, 3}  # both sweeps run pair by pair
    rollouts = 4 * (2 + 2 * 12 + 2)
    assert sum(line["tool"] is None for line in lines) == len(lines) / 2 == rollouts
    manifest = project.manifest()
    assert {"settings", "stamps", "versions", "seed", "draws", "warnings", "gate"} <= manifest.keys()
    assert set(manifest["stamps"]) == {"settings", "packs", "scenarios", "actor", "eval", "library"}
    assert manifest["tfgrpo"]["epochs"] == project.report()["epochs"]
    assert manifest["gate"]["outcome"] == project.report()["gate"]["outcome"]


def test_an_unwritable_output_folder_stops_the_run(project: Project) -> None:
    project.scenarios().write("out", "a file where the folder should be")
    result = project.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*cannot open the journal*out*", "*tfgrpo: the run failed: JournalError*"])


def test_a_changed_pack_is_refused_by_name(project: Project) -> None:
    project.scenarios().write("prompt-packs/text/system.md", "Solve it.\n").write(
        "prompt-packs/text/manifest.json",
        json.dumps(
            {"id": "text", "domain": "text", "system": "system.md", "inject": [], "experience_slots": 4}
        ),
    )
    result = project.learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*prompt-packs/text/manifest.json*tfgrpo stamp*"])
    assert project.cli("stamp") == 0
    assert project.learn().ret == 0
    project.write("prompt-packs/text/system.md", "Solve it differently.\n")
    assert project.learn().ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("flag", ["-x", "--maxfail=2"])
def test_after_a_stop_no_later_epoch_is_paid_for(project: Project, flag: str) -> None:
    project.scenarios(min_score=1.0).ini(actor="python:agent:wrong", baseline_sweep="early")
    project.learn(flag)
    assert project.manifest()["status"] == "cancelled"
    assert not [name for name in project.calls if "train" in name]
    assert project.report()["gate"]["outcome"] == "fail"


def test_the_command_that_runs_a_failed_item_again_learns_as_the_run_did(project: Project) -> None:
    project.ini(actor="python:agent:wrong").scenarios(train=1, sweep=1, min_score=1)
    learned = project.learn("--tfgrpo-seed=3", "--tfgrpo-eval-rollouts=2").stdout
    learned.fnmatch_lines(
        ["run it again: pytest --tfgrpo --tfgrpo-eval-rollouts=2 --tfgrpo-seed=3 *suite-eval0?epoch3-eval?'"]
    )
    project.run().stdout.fnmatch_lines(["run it again: pytest suite.scenario.json::suite-eval0"])
