"""Progress while a run works."""

import json
import re
import signal
import time
from collections.abc import Callable

import pytest
from support.fake_model import Answer, Body, Serve
from support.project import Project
from support.teachers import asked, operation, says
from support.terminals import CLOCK, LEARNER, SLOW_MODEL, Watched, watching
from support.tools import run_pytest

ARGS = ("--tfgrpo", "--tfgrpo-eval-rollouts=1", "-W", "ignore::pytest_tfgrpo.TfgrpoWarning")
MOMENTS = (
    (0, r" 0 of 8, 4 in flight for 0:00, "),
    (12, r" 0 of 8, 4 in flight for 0:12"),
    (30, r"\n(suite.scenario.json )?\.\.\n.* 4(/| of )8, 4 in flight, mean"),
    (60, r"\.\.\.\.\n(tfgrpo .*\n)*tfgrpo 2/2 epoch2-eval 0(/| of )\d, \d in flight"),
)
"""Times by the model's clock, and what the live line says then."""


@pytest.fixture
def slow(project: Project) -> Project:
    settings = {"concurrency": 4, "epochs": 2, "group_size": 2, "budget_usd": 2}
    (project.root / CLOCK).write_text("0")
    return project.agent(SLOW_MODEL).ini(actor="python:agent2:solve", **settings).scenarios(train=4)


def hold(project: Project, answered_from: dict[str, float]) -> Answer:
    """Return the answers of a teacher and of a judge, which come from a time of the clock on."""

    def answer(body: Body, attempt: int) -> str:
        while float((project.root / CLOCK).read_text() or 0) < answered_from[body["model"]]:
            time.sleep(0.005)
        if body["model"] == "judge":
            keys = body["response_format"]["json_schema"]["schema"]["properties"]
            met = any("\n3\nanswer:" in message["content"] for message in body["messages"])
            return json.dumps({key: {"why": "as it says", "met": met} for key in keys})
        if "Several tasks of one domain" in asked(body):
            return says(operation(lesson=LESSON, sources=["P1"]))
        return says(operation(lesson=LESSON))

    return answer


LESSON = "For letters: count each of the words."
LEARNING = (
    (0, r" 0 of 8, 4 in flight for 0:00"),
    (30, r" 0(/| of )8, 4 in flight, 4 at the judge"),
    (45, r" 4(/| of )8, 4 in flight, mean"),
    (60, r"epoch1: learning from 4 groups, 4 in flight, 0:00"),
    (80, r"epoch1: learning from 4 groups, 4 in flight, 0:20"),
    (90, r"epoch1 dev split 0(/| of )\d+, 4 in flight"),
    (120, r"epoch1 dev split 4(/| of )\d+, 4 in flight"),
)


def test_a_terminal_shows_the_calls_of_judge_and_teacher_and_the_dev_split(
    project: Project, serve: Serve, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-Zq8vWn3xKd7LpR2m")
    serve(hold(project, {"judge": 45, "teacher": 90}))
    (project.root / CLOCK).write_text("0")
    models = {"judge": "openai:judge", "judge_votes": 1, "optimizer": "llm", "teacher": "openai:teacher"}
    size = {"concurrency": 4, "epochs": 2, "group_size": 2, "lesson_dropout": 0, "gate_alarm": 1}
    project.agent(LEARNER).ini(actor="python:agent2:solve", **models, **size)
    judged = {"split": "train", "domain": "text", "truth": "judge", "rubric": ["The answer is 3."]}
    tasks = [{"id": f"train{n}", "prompt": f"How many words has train letter {n}?"} for n in range(4)]
    project.write("learn.scenario.json", json.dumps([task | judged for task in tasks]))
    project.tasks(name="swept", dev=20, eval=2)
    with watching(project.root, ARGS, terminal=True) as run:
        golden("live-learning.txt", story(project, run, LEARNING))


def set_clock(project: Project, seconds: float) -> None:
    path = project.root / f"{CLOCK}.new"
    path.write_text(str(seconds))
    path.replace(project.root / CLOCK)


def story(project: Project, run: Watched, moments: tuple[tuple[float, str], ...] = MOMENTS) -> str:
    """Return what the terminal of a run shows at some moments, and at its end."""
    shown = []
    for seconds, pattern in moments:
        set_clock(project, seconds)
        shown.append(f"--- after {seconds} s\n{body(run.wait_for(re.compile(pattern).search))}")
    set_clock(project, 1000)
    return "\n".join([*shown, f"--- at the end\n{body(run.end())}\n"])


def body(text: str) -> str:
    """Return what follows the collection of items, without the tfgrpo section and what differs by run."""
    rest = re.split(r"collected |workers ", text, maxsplit=1)[1]
    rest = re.sub(r"(?s)=+ tfgrpo =+\n.*?(?==+ \d+ passed)", "", rest)
    return re.sub(r"=+ (\d+ passed) in .*", r"\1", rest)


def test_a_terminal_of_a_slow_model_shows_what_goes_on(
    slow: Project, golden: Callable[[str, str], None]
) -> None:
    with watching(slow.root, ARGS, terminal=True) as run:
        golden("live-terminal.txt", story(slow, run))


def test_workers_leave_the_terminal_of_a_slow_model_as_it_is_without_them(
    slow: Project, golden: Callable[[str, str], None]
) -> None:
    slow.plugins("xdist")
    with watching(slow.root, [*ARGS, "-n", "2"], terminal=True) as run:
        golden("live-workers.txt", story(slow, run))


def test_a_log_of_a_slow_model_gets_a_line_now_and_then(
    slow: Project, golden: Callable[[str, str], None]
) -> None:
    """Between two lines are at least 10 s, in which what the next one says is settled."""
    with watching(slow.root, ARGS, terminal=False) as run:
        run.wait_for(lambda _: len(slow.calls) == 4)
        for seconds, pattern in ((25, "(?s) 0 of 8.*json$"), (31, r"json \.\."), (36, "(?s) 4 of 8.*json$")):
            set_clock(slow, seconds)
            run.wait_for(re.compile(pattern).search)
        golden("live-log.txt", body(run.written))
        set_clock(slow, 100)
        run.wait_for(lambda _: len(slow.calls) == 10)
        set_clock(slow, 200)
        run.end()
    for label in ("epoch1", "baseline", "epoch2-eval"):
        assert len(re.findall(f"(?m)^tfgrpo {label}: .* scored", run.written)) == 1


@pytest.mark.parametrize("plugin", ["terminal", "capture"])
def test_a_run_needs_neither_pytests_terminal_nor_its_capture(project: Project, plugin: str) -> None:
    project.scenarios()
    done = run_pytest(project.root, "--tfgrpo", "-p", f"no:{plugin}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert project.manifest()["status"] == "complete"


def test_with_q_a_terminal_stays_as_pytest_leaves_it(project: Project) -> None:
    with watching(project.scenarios().root, [*ARGS, "-q"], terminal=True) as run:
        run.end()
    assert "passed" in run.written
    assert "in flight" not in run.written
    assert "\x1b[J" not in run.written


def test_ctrl_c_leaves_no_live_line(slow: Project) -> None:
    with watching(slow.root, ARGS, terminal=True) as run:
        run.wait_for(re.compile("4 in flight").search)
        run.process.send_signal(signal.SIGINT)
        end = run.end()
    assert not re.search(r"\d in flight", end)
    assert "KeyboardInterrupt" in end


def test_tests_that_write_to_the_terminal_get_a_log_there(slow: Project) -> None:
    with watching(slow.root, [*ARGS, "-s"], terminal=True) as run:
        run.wait_for(lambda _: len(slow.calls) == 4)
        set_clock(slow, 25)
        assert run.wait_for(re.compile("4 in flight for 0:25.*\nsuite.scenario.json$").search)
    assert "\x1b[J" not in run.written
