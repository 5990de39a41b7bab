"""Progress while a run works."""

import re
import signal
from collections.abc import Callable

import pytest
from support.project import Project
from support.terminals import CLOCK, SLOW_MODEL, Watched, watching
from support.tools import run_pytest

ARGS = ("--tfgrpo", "--tfgrpo-eval-rollouts=1")
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


def test_each_phase_leaves_a_line_below_the_list_of_tests_but_not_with_q(project: Project) -> None:
    project.scenarios()
    result = project.learn()
    result.stdout.fnmatch_lines(
        [
            "*[[]100%[]]",
            "tfgrpo epoch2: 4 rollouts scored, gt mean 1.000*",
            "tfgrpo baseline: 4 rollouts scored, gt mean 1.000, 2 scenarios with the answers",
            "  of the final sweep",
            "tfgrpo epoch3-eval: *",
            "",
            "*= tfgrpo =*",
        ]
    )
    project.learn("-q").stdout.no_fnmatch_line("tfgrpo baseline: *")


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
    assert "in flight" not in end
    assert "KeyboardInterrupt" in end


def test_tests_that_write_to_the_terminal_get_a_log_there(slow: Project) -> None:
    with watching(slow.root, [*ARGS, "-s"], terminal=True) as run:
        run.wait_for(lambda _: len(slow.calls) == 4)
        set_clock(slow, 25)
        assert run.wait_for(re.compile("4 in flight for 0:25.*\nsuite.scenario.json$").search)
    assert "\x1b[J" not in run.written
