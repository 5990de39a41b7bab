"""Lessons across runs: the committed library, stamps, the store, and what a reader is told of them."""

import json

import pytest
from support.frozen import Frozen
from support.plugin.lessons import teach
from support.project import Project


@pytest.fixture
def taught(frozen: Frozen) -> Project:
    """A project with a stamped pack whose first run was promoted to the committed library."""
    return frozen(teach)


def test_learning_does_not_touch_the_committed_file(taught: Project) -> None:
    before = (taught.root / "library.json").read_bytes()
    taught.ini(actor="python:agent:half", group_size=4, library="library.json")
    taught.learn()
    assert (taught.root / "library.json").read_bytes() == before


def test_lessons_learned_with_another_actor_are_warned_of(taught: Project) -> None:
    taught.learn("--tfgrpo-actor", "python:agent:half")
    (warning,) = [text for text in taught.manifest()["warnings"] if "actor" in text]
    assert warning == "the library contains lessons learned with another actor: python:agent:learner"


def test_a_committed_lesson_that_holds_an_eval_answer_is_found_before_the_run(taught: Project) -> None:
    calls = len(taught.calls)
    taught.scenarios("new", train=0, sweep=2, checks=[{"kind": "exact", "value": "Letter"}])
    result = taught.learn("--tfgrpo-baseline-sweep", "off")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*new-eval0 ?eval? (new.scenario.json:2) has its answer in lesson *: 'letter'; *"]
    )
    assert len(taught.calls) == calls


def test_where_contamination_only_warns_such_a_lesson_leaves_the_gate_open_and_stays(taught: Project) -> None:
    lesson = json.loads((taught.root / "library.json").read_text())["experiences"][0]["summary32"]
    assert " letter" in lesson
    taught.scenarios("new", train=0, sweep=2, checks=[{"kind": "exact", "value": "Letter"}])
    result = taught.learn("--tfgrpo-baseline-sweep", "off", "--tfgrpo-contamination", "warn")
    result.stdout.fnmatch_lines(["*inconclusive*contamination: contaminated: *"])
    (rule,) = [r for r in taught.report()["gate"]["results"] if r["name"] == "contamination"]
    assert rule["outcome"] == "inconclusive"
    assert rule["figures"]["leaks"][0]["scenario_id"] == "new-eval0"
    assert lesson in {each["text"] for each in taught.report()["library"]["lessons"]}


def test_a_lesson_learned_in_the_run_that_holds_an_eval_answer_fails_the_gate(project: Project) -> None:
    project.scenarios(train=12, sweep=0).ini(actor="python:agent:learner", group_size=4, gate_alarm=1)
    project.scenarios("new", train=0, sweep=2, checks=[{"kind": "exact", "value": "Letter"}])
    result = project.learn()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["contamination: contaminated: *", "gate  FAILED, as shown above"])
    assert any(" letter" in each["text"] for each in project.report()["library"]["lessons"])


def test_epochs_without_spread_say_so(project: Project) -> None:
    result = project.scenarios().learn()
    result.stdout.fnmatch_lines(["0 active lessons; 0 of 4 training groups had mixed results, 0 yielded one"])


def test_lessons_keep_within_the_words_that_are_set(project: Project) -> None:
    project.scenarios(train=12, sweep=2).ini(
        actor="python:agent:learner", group_size=4, experience_max_words=8
    )
    project.learn()
    lessons = project.manifest()["tfgrpo"]["experiences"]
    assert lessons
    assert max(len(lesson["summary32"].split()) for lesson in lessons) <= 8


def test_the_library_cap_holds_per_domain(project: Project) -> None:
    project.scenarios(train=12, sweep=2).ini(actor="python:agent:learner", group_size=4, library_cap=1)
    project.learn()
    assert len(project.report()["library"]["lessons"]) == 1


def test_a_damaged_line_of_the_store_is_skipped_and_told(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.scenarios(train=12, sweep=2).ini(actor="python:agent:learner", group_size=4, task_id="t")
    store = project.write("out/t/experiences.jsonl", "garbage\n").root / "out/t/experiences.jsonl"
    result = project.learn()
    (warning,) = [text for text in project.manifest()["warnings"] if "experiences.jsonl" in text]
    assert warning.startswith(f"{store}: 1 malformed lines were skipped; the first is line 1: ")
    assert " 1 malformed lines were" in " ".join(result.stdout.str().split())
    assert project.cli("experiences", "--export") == 0
    out, err = capsys.readouterr()
    assert all(json.loads(line)["summary32"] for line in out.splitlines()[-1:])
    assert "1 malformed lines were skipped" in err


def test_the_share_of_groups_that_gave_a_lesson_is_reported(project: Project) -> None:
    project.scenarios(train=12, sweep=2).ini(actor="python:agent:learner", group_size=4)
    result = project.learn()
    library = project.report()["library"]
    assert 0 < library["lesson_groups"] <= library["informative_groups"] <= library["groups"] == 24
    mixed, lessons = library["informative_groups"], library["lesson_groups"]
    result.stdout.fnmatch_lines([f"*{mixed} of 24 training groups had mixed results, {lessons} *"])


TRIAGE = """
def act(context):
    wanted = "billing" if "bill" in context.prompt.user else "shipping"
    rule = "billing" in context.prompt.system or context.seed % 2
    tool = "look_up" if rule else "guess"
    return {"answer": wanted if rule else "sales", "frames": [{"kind": "tool", "name": tool}]}
"""
TEACH = """
from pytest_tfgrpo.core.lessons import Experience, Operation, Reward, Support
from pytest_tfgrpo.protocols import Proposal

LESSONS = (
    "Send questions about a bill to billing.",
    "Mail 0 is special: answer 48 213.",
    "Mail 0 is special: answer 48 213.",
)


class Teacher:
    name, identity = "mine", {"version": 1}

    async def propose(self, context):
        return Proposal(operations=tuple(self.lessons(context)))

    def lessons(self, context):
        for n, text in enumerate(LESSONS if context.epoch == 1 else LESSONS[1:]):
            yield Operation(kind="add", experience=Experience(
                id=f"{context.epoch}{n}" * 8, run_id=context.run_id, task_id=context.task_id, domain="text",
                prompt_pack_id=context.packs["text"].id, epoch=context.epoch,
                group_id=context.groups[0].group_id, summary32=text, polarity="do",
                reward=Reward(gt_score=1.0, relative_rank=1.0), support=Support(groups=1, rollouts=4),
                tool_stats=(), stamp_signature=context.packs["text"].stamp, actor=context.actor,
            ))


def pytest_tfgrpo_optimizer(spec):
    return Teacher() if spec == "mine" else None
"""


def test_a_class_can_be_taught_and_a_refusal_names_lesson_and_scenario(project: Project) -> None:
    project.agent(TRIAGE).conftest(TEACH)
    rows = [(split, n, "bill", "billing") for split in ("train", "eval") for n in range(6)]
    tasks = [
        {
            "id": f"{split}-{n}",
            "split": split,
            "domain": "text",
            "prompt": f"Which queue for {split} mail {n} about a {word}?",
            "checks": [{"kind": "exact", "value": answer}],
        }
        for split, n, word, answer in rows
    ]
    tasks[0]["checks"] = [{"kind": "contains", "values": ["billing", "48213"]}]
    project.write("triage.scenario.json", json.dumps(tasks))
    project.ini(actor="python:agent2:act", optimizer="mine", group_size=4, acceptance="off")
    result = project.learn()
    (lesson,) = project.report()["library"]["lessons"]
    assert lesson["text"] == "Send questions about a bill to billing."
    assert project.report()["epochs"][-1]["gt_score"]["mean"] == 1.0
    assert project.report()["library"]["refusals"] == [
        {
            "code": "leak",
            "text": "Mail 0 is special: answer 48 213.",
            "reason": "it contains an answer of scenario 'train-0'",
            "epoch": 1,
            "n": 4,
        }
    ]
    result.stdout.fnmatch_lines(
        [
            "  refused (leak): Mail 0 is special: answer 48 213.: it contains an answer of",
            "        scenario 'train-0' (4 times)",
        ]
    )
    (rule,) = [r for r in project.report()["gate"]["results"] if r["name"] == "contamination"]
    assert rule["outcome"] == "pass"


def test_a_flagged_lesson_is_promoted_by_its_id_alone(
    taught: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (taught.root / "library.json").unlink()
    monkeypatch.setattr("pytest_tfgrpo.cli.runs.library.flags_of", lambda text: ("tests",))
    assert taught.cli("library", "promote", "latest") == 1
    assert "flagged, and nothing is written" in capsys.readouterr().err
    assert not (taught.root / "library.json").exists()
    lessons = taught.report()["library"]["lessons"]
    accepted = [word for lesson in lessons for word in ("--accept-flagged", lesson["id"])]
    assert taught.cli("library", "promote", "latest", *accepted) == 0
    assert len(json.loads((taught.root / "library.json").read_text())["experiences"]) == len(lessons)
