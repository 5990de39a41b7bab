"""A campaign of tricks on the gate: an agent got worse, and the project tries to stay green."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.campaign import Campaign
from support.plugin.gate_tricks import CHECKER
from support.project import Project

GOOD = """
import os, time
from pathlib import Path
from pytest_tfgrpo import ProviderError


def solve(context):
    if "hard" in context.scenario.id:
        return hard(context)
    return "3"


def hard(context):
    return "3"
"""
WORSE = 'return "4"'
Apply = Callable[[Project], "list[str] | None"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trick:
    """One way to try it."""

    name: str
    apply: Apply
    """Changes the project, whose agent got worse already; returns the arguments of pytest."""
    said: str
    """What the output says, as a regular expression."""
    strict_only: bool = False
    """True where the run passes with a warning, and fails under ``gate_strict``."""


def red(name: str, said: str, apply: Apply) -> Trick:
    return Trick(name=name, apply=apply, said=said)


def open_(name: str, said: str, apply: Apply) -> Trick:
    return Trick(name=name, apply=apply, said=said, strict_only=True)


def hard_file(project: Project) -> Path:
    return project.root / "hard" / "suite.scenario.json"


def rewrite(project: Project, change: Callable[[dict[str, object]], object]) -> None:
    """Change each hard scenario in its file."""
    values = json.loads(hard_file(project).read_text())
    for value in values:
        change(value)
    hard_file(project).write_text(json.dumps(values))


def edited(*args: str, **fields: object) -> Apply:
    def apply(project: Project) -> list[str]:
        rewrite(project, lambda value: value.update(fields))
        return list(args)

    return apply


def arguments(*args: str) -> Apply:
    return lambda project: list(args)


def conftest(source: str, *args: str) -> Apply:
    def apply(project: Project) -> list[str]:
        project.conftest(f"import os\nimport pytest\n{source}")
        return list(args)

    return apply


def fails_by(source: str, *args: str) -> Apply:
    """The agent fails hard scenarios in another way."""

    def apply(project: Project) -> list[str]:
        project.agent(GOOD.removesuffix('return "3"\n') + source + "\n")
        return list(args)

    return apply


def hangs(project: Project) -> None:
    """The agent has no answer to hard scenarios in their time."""
    fails_by("time.sleep(1000)")(project)
    edited(timeout_s=0.5)(project)


def ini(line: str) -> Apply:
    def apply(project: Project) -> None:
        path = project.root / "pytest.ini"
        path.write_text(path.read_text() + line + "\n")

    return apply


def rename(project: Project) -> None:
    rewrite(project, lambda value: value.update(id=f"new-{value['id']}"))


def rename_file(project: Project) -> None:
    project.write("x.scenario.json", hard_file(project).read_text())
    hard_file(project).unlink()


def disguise(project: Project) -> None:
    hard_file(project).rename(hard_file(project).with_name("suite.json.bak"))


def other_tests(project: Project) -> None:
    project.write("test_unit.py", "def test_it(): pass\n")


def reword(project: Project) -> None:
    rewrite(project, lambda value: value.update(prompt=f"Say 4. {value['id']}"))


def train_everything(project: Project) -> None:
    for path in project.root.glob("*/suite.scenario.json"):
        path.write_text(path.read_text().replace('"eval"', '"train"'))
    other_tests(project)


def remove_everything(project: Project) -> None:
    for path in project.root.glob("*/suite.scenario.json"):
        path.unlink()
    other_tests(project)


def repack(project: Project) -> None:
    project.write("prompt-packs/p/system.md", "Guess.")
    project.write(
        "prompt-packs/p/manifest.json",
        json.dumps({"id": "p", "domain": "*", "system": "system.md", "stamp": ""}),
    )
    assert project.cli("stamp") == 0


def lower_the_baseline(project: Project) -> None:
    path = project.root / "baselines" / "main.json"
    path.write_text(path.read_text().replace('"sum": 1.0, "sum_sq": 1.0', '"sum": 0.0, "sum_sq": 0.0'))


def lower_and_unsign(project: Project) -> None:
    lower_the_baseline(project)
    path = project.root / "baselines" / "main.json"
    path.write_text(re.sub(r'  "hash".*\n', "", path.read_text()))


def dilute(project: Project) -> None:
    project.scenarios("more", train=0, sweep=60)


def die_once(project: Project) -> list[str]:
    fails_by(
        'mark = Path(__file__).with_name("died")\n'
        "    if not mark.exists():\n        mark.touch()\n        time.sleep(0.2)\n        os._exit(0)\n"
        '    return "4"'
    )(project)
    project.plugins("xdist")
    return ["-n", "1"]


HOOK_DROPS = """
def pytest_tfgrpo_scenarios(config, scenarios):
    return [s for s in scenarios if "hard" not in s.id]
"""
HOOK_TRAINS = """
from dataclasses import replace

def pytest_tfgrpo_scenarios(config, scenarios):
    return [replace(s, split="train") if "hard" in s.id else s for s in scenarios]
"""
IGNORES = """
def pytest_ignore_collect(collection_path):
    return "hard" in str(collection_path) or None
"""
ITEMS_DROPPED = """
def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if "hard" not in item.nodeid]
"""
ITEMS_MARKED = """
def pytest_collection_modifyitems(items):
    for item in items:
        if "hard" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason="flaky"))
"""
SKIPS = """
def pytest_runtest_setup(item):
    if {what!r} in item.nodeid:
        pytest.skip("flaky")
"""
REMOVED_LATE = """
def pytest_collection_finish(session):
    session.items[:] = [item for item in session.items if not any(word in item.nodeid for word in {what!r})]
"""
LEFT = """
@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report):
    if "easy-eval9" in report.nodeid and report.when == "teardown":
        pytest.exit("enough", returncode=0)
"""


def skip_in_worker(project: Project) -> list[str]:
    conftest(SKIPS.format(what="pytest.ini::gate"))(project)
    project.plugins("xdist")
    return ["-n", "1"]


def remove_late(project: Project) -> None:
    other_tests(project)
    conftest(REMOVED_LATE.format(what=["suite", "gate"]))(project)


LOST = r"baseline: .*of the baseline (?:is|are) no longer in the eval split"
DROPPED = r"baseline: worse: -0\.300"
PART = r"not checked .*only part of the suite was selected: "
DROPS = f"{PART}a hook pytest_tfgrpo_scenarios dropped hard-eval0"
LEARNING = ("--tfgrpo", "--tfgrpo-epochs=2")
TRICKS = [
    red("a worse agent", DROPPED, lambda project: None),
    red("a file removed", LOST, lambda project: hard_file(project).unlink()),
    red("renamed scenarios", LOST, rename),
    red("a renamed file", DROPPED, rename_file),
    red("moved to train", LOST, edited(split="train")),
    red("moved to train, learning", LOST, edited(*LEARNING, split="train")),
    red("moved to dev, learning", LOST, edited(*LEARNING, split="dev")),
    red("all moved to train", "no eval scenario was collected", train_everything),
    red("all removed", "no eval scenario was collected", remove_everything),
    red("another suffix", LOST, disguise),
    red("--ignore", LOST, arguments("--ignore=hard")),
    red("--ignore-glob", LOST, arguments("--ignore-glob=*hard*")),
    red("collect_ignore", LOST, conftest('collect_ignore = ["hard"]')),
    red("a hook that ignores", LOST, conftest(IGNORES)),
    red("testpaths", LOST, ini("testpaths = easy")),
    red("norecursedirs", LOST, ini("norecursedirs = hard")),
    open_("--deselect", PART + "hard-eval0", arguments("--deselect=hard/suite.scenario.json")),
    open_("-k", PART + "hard-eval0", arguments("-k", "easy")),
    open_("a path", PART + "hard-eval0", arguments("easy")),
    open_("a hook drops scenarios", DROPS, conftest(HOOK_DROPS)),
    open_("a hook trains scenarios", DROPS, conftest(HOOK_TRAINS)),
    red("a hook trains scenarios, learning", LOST, conftest(HOOK_TRAINS, *LEARNING)),
    open_("a hook drops items", PART + "hard-eval0", conftest(ITEMS_DROPPED)),
    red("a marker skips items", DROPPED, conftest(ITEMS_MARKED)),
    red("a hook skips items", DROPPED, conftest(SKIPS.format(what="hard"))),
    red("a hook skips the gate", DROPPED, conftest(SKIPS.format(what="pytest.ini::gate"))),
    red("a hook skips the gate in a worker", DROPPED, skip_in_worker),
    red("the gate removed late", DROPPED, conftest(REMOVED_LATE.format(what=["pytest.ini::gate"]))),
    red("all removed late", "the gate did not run", remove_late),
    red("pytest.exit", "gate +FAILED", conftest(LEFT)),
    red("--runxfail", DROPPED, arguments("--runxfail")),
    red("a crash", DROPPED, fails_by("raise RuntimeError(1)")),
    red("a time-out", DROPPED, hangs),
    red("an error of the provider", r"with errors as 0: -0\.300", fails_by('raise ProviderError("503")')),
    red("an answer that is none", DROPPED, fails_by("return object()")),
    red("an interrupt", "", fails_by("raise KeyboardInterrupt")),
    red("an exit of the agent", DROPPED, fails_by("raise SystemExit(0)")),
    red("another temperature", "suite.scenario.json::hard-eval0", arguments("--tfgrpo-temperature-eval=0.9")),
    open_(
        "another temperature, learning",
        "not checked .*the baseline was made at temperature 0.3, the sweep at 0.9",
        arguments(*LEARNING, "--tfgrpo-temperature-eval=0.9"),
    ),
    red("other seeds", DROPPED, arguments("--tfgrpo-seed=7")),
    red("more tokens", DROPPED, arguments("--tfgrpo-max-tokens=9")),
    red("more rollouts", DROPPED, arguments("--tfgrpo-eval-rollouts=3")),
    red("no minimum", DROPPED, arguments("--tfgrpo-min-score=0")),
    red("no minimum of its own", DROPPED, edited(min_score=0)),
    red("no baseline", "suite.scenario.json::hard-eval0", arguments("--tfgrpo-baseline=none")),
    red("other prompts", "cannot see a drop of .*70% of the scenarios", reword),
    red(
        "weaker checks",
        "cannot see a drop of .*70% of the scenarios",
        edited(checks=[{"kind": "contains", "value": "4"}]),
    ),
    red("another pack", "made with other prompt packs", repack),
    red("easy scenarios that dilute", r"baseline: worse: .*30 in common", dilute),
    red("a baseline made lower", "is not the hash of its content", lower_the_baseline),
    open_("a baseline made lower, unsigned", "the baseline was not signed", lower_and_unsign),
    red("-x", DROPPED, arguments("-x")),
    red("--maxfail", DROPPED, arguments("--maxfail=1")),
    red("a worker that dies", DROPPED, die_once),
]


class Saved:
    """A project with a baseline of 21 easy and 9 hard scenarios, as good as new for each trick."""

    def __init__(self, project: Project, place: Path) -> None:
        project.scenarios("easy", train=0, sweep=21).scenarios("hard", train=0, sweep=9).agent(GOOD)
        for name in ("easy", "hard"):
            (project.root / name).mkdir()
            (project.root / f"{name}.scenario.json").rename(project.root / name / "suite.scenario.json")
        project.ini(actor="python:agent2:solve", baseline="main", gate_margin=0.15)
        assert project.run("--tfgrpo-out=out", "--tfgrpo-baseline=none").ret == 0
        assert project.cli("baseline", "save", "main") == 0
        self.project, self._copy = project, Path(shutil.copytree(project.root, place))
        assert project.run().ret == 0

    @contextmanager
    def fresh(self) -> Iterator[Project]:
        """Bring the project back, without what a trick left in it."""
        for path in self.project.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self._copy, self.project.root, dirs_exist_ok=True)
        self.project.plugins()
        yield self.project


@pytest.fixture
def saved(
    project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Saved:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file changes twice in one tick of its clock
    return Saved(project, tmp_path_factory.mktemp("saved") / "copy")


def tried(saved: Saved, trick: Trick, *more: str) -> tuple[int, str]:
    with saved.fresh() as project:
        project.agent(GOOD.removesuffix('return "3"\n') + WORSE + "\n")
        args = trick.apply(project)
        result = project.run(*(args if isinstance(args, list) else ()), *more)
        return int(result.ret), " ".join(" ".join([*result.outlines, *result.errlines]).split())


@pytest.mark.faults
def test_no_trick_makes_the_gate_of_a_worse_agent_green(saved: Saved, campaign: Campaign) -> None:
    wrong: dict[str, tuple[int, str]] = {}
    for trick in campaign.sample(TRICKS, 8):
        code, text = tried(saved, trick)
        as_expected = code == 0 if trick.strict_only else code in (1, 2, 4)
        if not as_expected or not re.search(trick.said, text):
            wrong[trick.name] = (code, text[-1500:])
        elif trick.strict_only and tried(saved, trick, "--tfgrpo-gate-strict=true")[0] != 1:
            wrong[trick.name] = (code, "green under gate_strict")
    assert not wrong, "\n\n".join(f"{name}: exit {code}: {text}" for name, (code, text) in wrong.items())


LEGITIMATE: Mapping[str, Apply] = {
    "nothing changed": lambda project: None,
    "new scenarios": lambda project: project.scenarios("new", train=0, sweep=3) and None,
    "train scenarios": lambda project: project.scenarios("new", train=3, sweep=0) and None,
    "another file": rename_file,
    "other tags, domain and minimum": edited(tags=["x"], timeout_s=5),
    "both paths": arguments("easy", "hard"),
    "the root as a path": arguments("."),
    "workers": lambda project: project.plugins("xdist") and ["-n", "2"],
    "strict": arguments("--tfgrpo-gate-strict=true"),
    "more rollouts": arguments("--tfgrpo-eval-rollouts=2"),
    "learning": arguments("--tfgrpo", "--tfgrpo-epochs=2"),
    "other tests": lambda project: project.write("test_unit.py", "def test_it(): pass\n") and None,
    "only other tests": lambda p: p.write("unit/test_unit.py", "def test_it(): pass\n") and ["unit"],
}


@pytest.mark.faults
def test_what_is_legitimate_stays_green(saved: Saved, campaign: Campaign) -> None:
    wrong = {}
    for name in campaign.sample(LEGITIMATE, 3):
        with saved.fresh() as project:
            args = LEGITIMATE[name](project)
            result = project.run(*(args if isinstance(args, list) else ()))
            if result.ret != 0 or "inconclusive" in result.stdout.str():
                wrong[name] = result.stdout.str()[-1500:]
    assert not wrong, wrong


@pytest.mark.faults
@pytest.mark.parametrize(
    ("before", "instead", "said", "strict_only"),
    [
        (
            "",
            "pytest.skip('bad answer')",
            r"6 of 20 scenarios of \S+ were skipped by their test function \(",
            True,
        ),
        (
            "BAD and pytest.skip('no', allow_module_level=True)",
            "pass",
            "no eval scenario was collected",
            False,
        ),
        ("", "pytest.xfail('known')", r"baseline: worse: -0\.300", False),
        ("", "pytest.exit('enough', returncode=0)", "FAILED", False),
        (
            "pytestmark = pytest.mark.skipif(BAD, reason='no')",
            "pass",
            "20 of 20 scenarios .* were skipped",
            False,
        ),
    ],
    ids=["skip", "skip the module", "xfail", "exit", "a mark"],
)
def test_a_test_function_cannot_hide_bad_answers(
    project: Project, before: str, instead: str, said: str, strict_only: bool
) -> None:
    def write(bad: bool) -> None:
        project.checker(f"BAD = {bad}\n{before}\n" + CHECKER.format(instead=instead))

    write(False)
    project.ini(actor="python:agent:right", baseline="main", gate_margin=0.15)
    assert project.run("--tfgrpo-out=out", "--tfgrpo-baseline=none").ret == 0
    assert project.cli("baseline", "save", "main") == 0
    write(True)
    result = project.run()
    assert re.search(said, " ".join(" ".join(result.outlines).split()))
    assert (result.ret == 0) is strict_only
    assert project.run("--tfgrpo-gate-strict=true").ret == 1
