"""A gate held against an old library or old prompt packs, which the run asks beside its own."""

import json
from typing import Any

import pytest
from support.frozen import Frozen
from support.plugin.references import held, lesson, look_again, rule, write_pack, write_versions
from support.preparing import refusal
from support.project import Project

from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.learning.library.library import of, save_library
from pytest_tfgrpo.runs.journal.journal_contents import load_run


@pytest.fixture
def versions(project: Project) -> Project:
    """A project with a pack, a library with a lesson, one without, and 12 eval scenarios, 4 without any."""
    return write_versions(project)


def asked(project: Project) -> list[list[str]]:
    """Return scenario, version and seed of each call."""
    return [line.split() for line in (project.root / "calls.log").read_text().splitlines()]


def test_both_libraries_are_asked_pair_by_pair_in_random_order_and_equal_prompts_once(
    versions: Project,
) -> None:
    result = held(versions).run("-v")
    assert result.ret == 0
    calls = asked(versions)
    own = [call for call in calls if call[0].startswith("suite")]
    pairs = list(zip(own[::2], own[1::2], strict=True))
    assert len(pairs) == 8 * 3
    assert all((one[0], one[2]) == (two[0], two[2]) and one[1] != two[1] for one, two in pairs)
    assert 4 < sum(one[1] == "told" for one, _ in pairs) < 20
    assert len(calls) - len(own) == 4 * 3
    assert result.parseoutcomes().items() >= {"passed": 8 + 1, "below": 4}.items()
    assert rule(versions)["outcome"] == "pass"
    assert rule(versions)["figures"]["difference"] == pytest.approx(8 / 12)


def test_an_older_library_that_does_better_fails_the_gate_and_every_report_names_it(
    versions: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    result = held(versions.pages(), library="empty.json", baseline="taught.json").run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    stamp = json.loads((versions.root / "taught.json").read_text())["hash"]
    title = f"library taught.json ({stamp[:12]})"
    assert rule(versions)["message"].startswith("worse: -0.667 (from 0.667 to 0.000)")
    assert (
        f"reference {title}, evaluated pair by pair in this run, where 4 scenarios have the same"
        in (rule(versions)["message"])
    )
    folder, report = versions.runs()[-1], versions.report()
    reference = {"name": "taught.json", "kind": "library", "stamp": stamp}
    assert report["gain"]["control"] == {
        "asked": "concurrent", "shared": 4, "drift": None, "reference": reference,
    }  # fmt: skip
    assert "claim" not in report["gain"]
    assert list(violations("report", report)) == []
    assert [row["experiences"]["in_force"] for row in report["epochs"]] == [1, 0]
    assert f"gain -0.667 over the reference, {title}" in " ".join(" ".join(result.outlines).split())
    assert f"over the reference, {title}" in (folder / "report.html").read_text()
    capsys.readouterr()
    assert versions.cli("report", "latest") == 0
    assert f"gain -0.667 over the reference, {title}" in " ".join(capsys.readouterr().out.split())
    for name, start in (
        ("e0.other-eval0.r1", "e0.other-eval0.r1 was not asked: its prompt is that of the final sweep"),
        ("other-eval0.r1", "rollout "),
        ("e0.suite-eval0.r1", "rollout "),
    ):
        assert versions.cli("show", name) == 0
        told = capsys.readouterr().out
        assert told.replace(f"{folder.name}.", "").startswith(start)
        assert f"rollout {folder.name}.{'e0.suite' if 'suite' in name else 'e1.other'}-eval0.r1: " in told
    loaded = load_run(folder)
    assert loaded.reference is not None
    assert (loaded.reference.library.hash, loaded.stamps["reference"]) == (stamp, stamp)


def test_a_library_against_itself_costs_one_sweep_and_passes(versions: Project) -> None:
    result = held(versions, baseline="taught.json").run()
    assert (result.ret, len(asked(versions))) == (0, 12 * 3)
    assert rule(versions)["outcome"] == "pass"
    assert rule(versions)["message"].endswith("is what the run itself uses")


@pytest.mark.parametrize("named", ["old/prompt-packs", "old/prompt-packs/text"])
def test_old_packs_carry_the_lessons_that_were_rebased_since(versions: Project, named: str) -> None:
    write_pack(versions, "old/prompt-packs/text", "Be wise.")
    result = held(versions, "obedient", baseline=named).run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert {call[1] for call in asked(versions)} == {"wise-told", "plain-told", "plain-untold"}
    assert rule(versions)["figures"]["difference"] == pytest.approx(-8 / 12)
    assert f"reference packs {named} (" in rule(versions)["message"]


def test_lessons_of_the_old_pack_that_nobody_rebased_count_for_the_old_version(versions: Project) -> None:
    write_pack(versions, "old/text", "Answer.")
    write_pack(versions, "prompt-packs/text", "Answer me.")
    assert held(versions, baseline="old").run().ret == pytest.ExitCode.TESTS_FAILED
    assert rule(versions)["figures"]["difference"] == pytest.approx(-8 / 12)


def test_where_the_gate_cannot_see_it_takes_more_pairs(frozen: Frozen) -> None:
    versions = frozen(look_again)
    rows = {row["mode"]: row for row in versions.report()["epochs"]}
    assert (rows["baseline"]["rollouts"], rows["eval"]["rollouts"]) == (8 * 12, 12 * 12)
    assert rule(versions)["figures"]["looks"] == [3, 6, 12]
    assert len(asked(versions)) == 8 * 24 + 4 * 12
    sweeps = load_run(versions.runs()[-1]).phases
    assert [result.phase.rollouts for result in sweeps] == [12, 12]


def test_a_replay_finds_the_same_without_a_call(versions: Project) -> None:
    held(versions, "noisy", min_score=0, record="answers.jsonl").run()
    before, calls = rule(versions), len(asked(versions))
    held(versions, min_score=0, actor="replay:answers.jsonl").run()
    assert (rule(versions), len(asked(versions))) == (before, calls)


def test_a_dry_run_and_the_list_of_items_show_what_would_be_asked(versions: Project) -> None:
    held(versions)
    plan = versions.run("--tfgrpo-dry-run").outlines
    assert any(line.startswith("baseline: library empty.json (") for line in plan)
    rows = [line.split() for line in plan]
    assert ["baseline", "0.3", "12", "3", "24"] in rows  # the prompts of 4 are the same without the library
    assert ["total", "60"] in rows
    assert ["at", "most", "240"] in rows
    listed = [line for line in versions.run("--co", "-q").outlines if "::" in line]
    assert len(listed) == 12 + 1
    assert versions.calls == []


def test_a_watch_ends_the_sweep_by_pairs(versions: Project) -> None:
    versions.scenarios(train=0, sweep=60)
    held(versions, gate_sequential="true", library="empty.json", baseline="taught.json", eval_rollouts=2)
    assert versions.run().ret == pytest.ExitCode.TESTS_FAILED
    report = versions.report()
    assert report["sequential"]["left_out"] > 10
    assert report["sequential"]["rollouts_saved"] == 4 * report["sequential"]["left_out"]
    assert rule(versions)["outcome"] == "fail"


def test_named_gates_share_the_reference_and_domains_are_judged_apart(versions: Project) -> None:
    gates = """
gates:
  here: {domains: [text]}
  there: {domains: [other]}
  each: {per_domain: true}
  free: {baseline: none, min_mean: 0}
"""
    versions.write("gates.yaml", gates)
    held(versions, library="empty.json", baseline="taught.json", gates="gates.yaml").run()
    found = {gate["name"]: gate for gate in versions.report()["gate"]["gates"]}
    assert {name: gate["outcome"] for name, gate in found.items()} == {
        "here": "fail", "there": "fail", "each": "fail", "free": "pass",
    }  # fmt: skip
    assert [r["name"] for r in found["each"]["results"]] == [
        "complete", "baseline (other)", "baseline (text)",
    ]  # fmt: skip
    assert [r["name"] for r in found["free"]["results"]] == ["complete", "minimum mean"]


def test_a_learning_run_is_held_against_the_library_that_it_starts_from(versions: Project) -> None:
    versions.scenarios("train", train=12, sweep=0)
    learner = {"group_size": 4, "acceptance": "off", "lesson_dropout": 0}
    held(versions, **learner, library="empty.json", min_score=0)
    versions.learn("--tfgrpo-actor=python:agent:learner")
    assert rule(versions)["figures"]["difference"] == versions.report()["gain"]["difference"]
    assert (rule(versions, "gain")["outcome"], rule(versions, "gain")["message"]) == (
        "skipped", "the baseline sweep is that of the reference",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "flags", "why"),
    [
        ({"baseline": "missing.json"}, (), "there is no such baseline"),
        ({"baseline": "foreign.json"}, (), "a library of another prompt pack: 1 lesson of the domain 'text'"),
        ({"baseline": "broken.json"}, (), "is not the hash of its lessons"),
        ({"baseline": "unstamped"}, (), "is not stamped"),
        ({"baseline": "strange/words"}, (), "a prompt pack of the domain 'words', and no eval scenario"),
        ({"prompt_packs": "slotless"}, (), "no prompt can carry a lesson: 'all' has experience_slots 0"),
        ({"baseline_sweep": "off"}, (), "is asked in the baseline sweep, and baseline_sweep is 'off'"),
        ({"baseline_sweep": "both"}, (), "set eval_rollouts to at least 4"),
        ({}, ("--tfgrpo",), "is not what a learning run starts from"),
        (
            {"baseline": "none", "gates": "gates.yaml"},
            (),
            "name it in tfgrpo_baseline, and leave it out here",
        ),
    ],
)
def test_what_cannot_be_compared_is_found_before_a_call(
    versions: Project, settings: dict[str, Any], flags: tuple[str, ...], why: str
) -> None:
    foreign = write_pack(versions, "foreign/text", "Other.")
    save_library(versions.root / "foreign.json", of([lesson(foreign)]))
    text = (versions.root / "taught.json").read_text().replace("by letter", "by hand")
    versions.write("broken.json", text).write("gates.yaml", "gates: {one: {baseline: empty.json}}")
    write_pack(versions, "strange/words", "Other.", domain="words")
    write_pack(versions, "slotless/all", "Answer.", domain="*", experience_slots=0)
    manifest = {"id": "text", "domain": "text", "system": "system.md"}
    versions.write("unstamped/text/manifest.json", json.dumps(manifest)).write(
        "unstamped/text/system.md", "x"
    )
    assert why in " ".join(refusal(held(versions, **settings), *flags).split())


def test_a_reference_that_is_not_there_is_a_usage_error(versions: Project) -> None:
    result = held(versions, baseline="missing.json").run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "there is no such baseline" in " ".join(" ".join(result.errlines).split())
    assert "Traceback" not in result.stderr.str()
    assert versions.calls == []
