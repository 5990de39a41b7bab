"""Metrics of additional rewarders from a conftest.py to every file, and what bad ones get."""

import pytest
from support.frozen import Frozen
from support.plugin.metrics import KEY, MANNERS, learn, per_epoch, write_mannered
from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.runs.journal.journal_contents import load_run


@pytest.fixture
def mannered(project: Project) -> Project:
    """A project with a rewarder that names two scores, and an agent that learns."""
    return write_mannered(project)


def test_scores_and_reasons_of_a_rewarder_reach_every_file(project: Project, frozen: Frozen) -> None:
    result = frozen.run(learn)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["metric *", "manners *", "manners.warmth *", "manners.wit * 0.750*"])
    value = per_epoch(project)
    assert violations("per-epoch", value) == []
    assert value["epochs"] == project.report()["epochs"]
    for row in value["epochs"]:
        assert list(row["metrics"])[3:] == ["manners", "manners.warmth", "manners.wit", "check.exact"]
        assert row["metrics"]["manners.wit"]["mean"] == 0.75
        assert row["metrics"]["manners.wit"]["domains"]["text"]["n"] == row["groups"]
    scores = [score for p in load_run(project.runs()[-1]).phases for g in p.groups for score in g.scores]
    for score in scores:
        warm = 0.25 if score.gt_score == 1 else None
        own = 0.5 if warm else 0.75
        assert score.extra == {"manners": own, "manners.warmth": warm, "manners.wit": 0.75}
        assert score.reward == pytest.approx((score.gt_score + 0.5 * own) / 1.5)
        assert score.evidence["manners.warmth"].startswith("key [redacted:")
    for path in project.runs()[-1].iterdir():
        if path.is_file():
            assert KEY not in path.read_text(encoding="utf-8")


def test_a_rollout_is_shown_with_what_rewarders_say(frozen: Frozen) -> None:
    frozen(learn)
    shown = tfgrpo("show", "e3.suite-eval0.r0")
    assert "\n  manners.wit 0.750\n" in shown
    assert "\n  manners.warmth 0.250: key [redacted:" in shown
    assert "\x1b" not in shown
    assert "\\ud800<b>" in shown


def test_a_resumed_run_has_the_metrics_of_an_uninterrupted_one(frozen: Frozen) -> None:
    mannered = frozen(learn)
    whole = per_epoch(mannered)
    folder = mannered.runs()[-1]
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[: 2 * len(lines) // 3]))
    for name in ("report.json", "manifest.json", "per-epoch.json"):
        (folder / name).unlink()
    assert mannered.learn("--tfgrpo-resume").ret == 0
    resumed = per_epoch(mannered)
    assert resumed["run_id"] == whole["run_id"]
    assert [row["metrics"] for row in resumed["epochs"]] == [row["metrics"] for row in whole["epochs"]]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("{'a b': 1.0}", "rewarder 'manners' names a score 'a b'"),
        ("(2.0, 'too much')", "rewarder 'manners' returned 2.0 for rollout"),
        ("(0.5, 3)", "a result with a reason is (number, text)"),
    ],
)
def test_a_result_that_is_none_aborts_the_run_with_its_reason(
    mannered: Project, result: str, said: str
) -> None:
    rate = MANNERS[MANNERS.index("        return {{"[:-1]) : MANNERS.index("\n\n\ndef")]
    mannered.conftest(MANNERS.replace(rate, f"        return {result}"))
    assert mannered.learn().ret == pytest.ExitCode.TESTS_FAILED
    manifest = mannered.manifest()
    assert manifest["status"] == "aborted"
    assert said in manifest["reason"]


SCORED = """
@pytest.mark.tfgrpo(split="eval", **MARK)
def test_it(rollout):
    tfgrpo.score("tone", 0.25, "curt, key {key}")
    tfgrpo.score("tone", 0.75)
    tfgrpo.score("tone", 0.5, "key {key} <b>")
    tfgrpo.score("length", 240, unit="words", most=500, better="lower")
    assert rollout.answer == "no"
"""


def test_named_scores_of_a_test_function_decide_nothing_and_reach_every_file(project: Project) -> None:
    project.checker(SCORED.replace("{key}", KEY))
    result = project.pages().ini(actor="python:agent:half", group_size=2).learn("-v")
    result.stdout.fnmatch_lines(
        ["test.length (words, lower is better) * 240.000 *", "test.tone * 0.500 *"], consecutive=False
    )
    row = per_epoch(project)["epochs"][-1]
    assert violations("per-epoch", per_epoch(project)) == []
    assert (row["gt_score"]["mean"], row["metrics"]["check.test"]["mean"]) == (0.0, 0.0)
    assert row["metrics"]["test.tone"]["mean"] == 0.5
    rollouts = [r for p in load_run(project.runs()[-1]).phases for g in p.groups for r in g.rollouts]
    assert all(r.scores[0].why.startswith("key [redacted:") for r in rollouts)
    shown = tfgrpo("show", rollouts[-1].rollout_id)
    assert "\n  test.tone 0.500: key [redacted:" in shown
    assert "\n  test.length 240.000 words\n" in shown
    for path in project.runs()[-1].iterdir():
        if path.is_file():
            assert KEY not in path.read_text(encoding="utf-8")


def test_named_scores_are_there_after_a_resume(project: Project) -> None:
    project.checker(SCORED.replace("{key}", "")).ini(actor="python:agent:half", group_size=2).learn()
    whole = per_epoch(project)["epochs"][-1]["metrics"]
    folder = project.runs()[-1]
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) - 3]))
    project.learn("--tfgrpo-resume=latest")
    assert per_epoch(project)["epochs"][-1]["metrics"] == whole


UNFIT = {
    "'tone', float('nan')": "score 'tone': a score must be a number between 0 and 1, not nan",
    "'tone', 12": "not 12; set `most` and `unit` for larger values",
    "'tone', 501, most=500": "a score must be a number between 0 and 500, not 501",
    "'to ne', 0.5": "the name of a score must be 1 to 64 letters, digits, '_' and '-'",
    "'test.tone', 0.5": "the name of a score must be 1 to 64 letters, digits, '_' and '-', not 'test.tone'",
    "'tone', 0.5, better='more'": "better must be 'higher' or 'lower', not 'more'",
    "0.5, unit='s'": "only a named score has a scale",
}
"""Calls of a test function, and what is wrong with them."""


def test_unfit_named_scores_are_errors_of_their_test_functions(project: Project) -> None:
    project.checker(
        "".join(
            f"@pytest.mark.tfgrpo(split='eval', prompt='How many words has {n}?')\n"
            f"def test_it{n}(rollout):\n    tfgrpo.score({call})\n\n"
            for n, call in enumerate(UNFIT)
        )
    )
    result = project.ini(actor="python:agent:half", group_size=2).learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    rollouts = [r for p in load_run(project.runs()[-1]).phases for g in p.groups for r in g.rollouts]
    for n, message in enumerate(UNFIT.values()):
        failures = {r.failure.message for r in rollouts if r.failure and f"test_it{n}" in r.scenario_id}
        assert len(failures) == 1
        assert message in failures.pop()


def test_a_rewarder_does_not_take_the_name_of_a_source(project: Project) -> None:
    text = MANNERS.replace('"manners"', '"judge"')
    result = project.scenarios(train=0, sweep=1).conftest(text).ini(actor="python:agent:half").learn()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*the rewarder name 'judge' begins the names of other metrics (judge[.][*])*"]
    )
