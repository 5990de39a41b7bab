"""Environments of recipes: what they are made of, made once, and what is said where none can be."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.environment.builder import AT, part

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.harvest.environment import builder as module
from pytest_tfgrpo.harvest.environment.builder import EnvironmentBuilder
from pytest_tfgrpo.harvest.environment.package_tools import BuildProblem, BuildTools, Locked
from pytest_tfgrpo.sandbox.programs.environments import BUILT, SETUP, VENV, Environment, stamp_of
from pytest_tfgrpo.scoring.runners.protocol import SuiteCommand

LOCK = tuple(f"{name}=={version} --hash=sha256:{'a' * 64}" for name, version in (("my_shop", 3), ("soap", 1)))
UNTIL = "2022-08-01T00:00:00Z"


class Programs:
    """Stands for the programs that a builder starts, and keeps what they were given."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen = list[tuple[Any, ...]]()
        self.locked, self.fails = Locked(lines=LOCK, notes=("no date",), until=UNTIL), ""
        self.then: Any = lambda folder: None
        for name in ("lock", "make_venv", "install", "run_setup", "inside", "lock_node_packages"):
            monkeypatch.setattr(module, name, getattr(self, name))

    def lock(self, _: BuildTools, python: str, items: Sequence[str], until: str | None, work: Path) -> Locked:
        assert list(work.iterdir()) == []
        (work / "left").touch()
        self.seen.append(("lock", python, tuple(items), until))
        if self.fails == "lock":
            raise BuildProblem("cannot resolve soap")
        return self.locked

    def lock_node_packages(
        self, _: BuildTools, files: dict[str, str], until: str | None, work: Path
    ) -> tuple[dict[str, str], tuple[str, ...]]:
        (work / "left").touch()
        self.seen.append(("node", until))
        return {**files, "package-lock.json": "{}"}, ("npm has no date",)

    def make_venv(self, _: BuildTools, python: Path, folder: Path) -> None:
        self.seen.append(("venv", python))
        (folder / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
        (folder / "bin").mkdir()
        (folder / "bin" / "python").symlink_to(sys.executable)
        (folder / "pyvenv.cfg").write_text("home = x\n")

    def install(self, _: BuildTools, environment: Environment, folder: Path, venv: Path, base: Path) -> None:
        self.seen.append(("install", environment.lock, venv.relative_to(folder).as_posix(), base))
        if self.fails == "install":
            raise OSError(errno.ENOSPC, "No space left on device")

    def run_setup(self, _: BuildTools, environment: Environment, folder: Path) -> None:
        files = sorted(path.name for path in (folder / SETUP).rglob("*") if path.is_file())
        self.seen.append(("setup", environment.setup, files))
        if "package.json" in environment.files:
            (folder / SETUP / "node_modules").mkdir()
        self.then(folder)

    def inside(self, _: BuildTools, argv: Sequence[str], folder: Path, programs: Sequence[Path]) -> Any:
        self.seen.append(("inside", argv[1:5], [path.relative_to(folder).as_posix() for path in programs]))
        return 1, "a module is broken"

    def did(self) -> list[str]:
        done = [one[0] for one in self.seen]
        self.seen.clear()
        return done


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Programs:
    return Programs(monkeypatch)


def builder(cache: Path) -> EnvironmentBuilder:
    tools = BuildTools(interpreters={"3.11": Path("/py3.11"), "3.12": Path("/py3.12")}, uv=None, environ={})
    return EnvironmentBuilder(tools, cache)


RECIPE = part(
    python="3.11",
    dependencies=("soap",),
    setup=(("make", "data"),),
    files={"data/Makefile": "data:\n"},
    distributions={"My.Shop": "1.2", "pytest": "8"},
    variables={"TZ": "UTC"},
    command=SuiteCommand(runner="command", run=("x", "{report}")),
)


def test_an_environment_is_made_of_its_recipe_and_as_of_the_end_of_the_month(
    tmp_path: Path, programs: Programs
) -> None:
    made = builder(tmp_path).make(RECIPE, AT)
    assert made.environment is not None
    assert made.built is not None
    assert programs.seen == [
        ("lock", "3.11", ("soap",), module.until_of(AT)),
        ("venv", Path("/py3.11")),
        ("install", LOCK[1:], VENV, Path("/py3.11")),
        ("setup", (("make", "data"),), ["Makefile"]),
        ("inside", ["-I", "-m", "compileall", "-q"], [f"{VENV}/bin/python"]),
    ]
    environment = made.environment
    assert (environment.lock, environment.until, environment.variables) == (LOCK[1:], UNTIL, {"TZ": "UTC"})
    assert (environment.files, environment.links) == ({"data/Makefile": "data:\n"}, ())
    assert (made.notes, made.built.stamp) == (("no date",), stamp_of(environment))
    assert made.built.folder == tmp_path / stamp_of(environment)
    assert (made.built.folder / SETUP / "data/Makefile").read_text() == "data:\n"
    metadata = made.built.folder / VENV / "lib/python3.11/site-packages/My_Shop-1.2.dist-info/METADATA"
    assert "Version: 1.2" in metadata.read_text()
    assert (made.built.folder / BUILT).read_bytes() == b""
    assert sorted(path.suffix for path in (tmp_path / "resolved").iterdir()) == [".json"]


def test_what_was_resolved_and_built_is_taken_again(tmp_path: Path, programs: Programs) -> None:
    first = builder(tmp_path).make(RECIPE, AT)
    everything = programs.did()
    assert builder(tmp_path).make(RECIPE, AT) == first
    assert builder(tmp_path).make(replace(RECIPE, sources={"a": "b"}, tests=("x",)), AT) == first
    assert programs.did() == []
    assert first.built is not None
    (first.built.folder / BUILT).unlink()
    (first.built.folder / "half").touch()
    assert builder(tmp_path).make(RECIPE, AT) == first
    assert programs.did() == everything[1:]
    assert not (first.built.folder / "half").exists()


@pytest.mark.parametrize(
    "more",
    [
        {"dependencies": ("soap", "lye")},
        {"setup": ()},
        {"imports": ("src",)},
        {"variables": {}},
        {"files": {}},
        {"distributions": {}},
        {"entry_points": {"My.Shop": "[a]\nb = c\n"}},
        {"python": "3.12"},
        {"folder": "api"},
        {"relaxed": True},
    ],
    ids=lambda more: next(iter(more)),
)
def test_each_value_of_a_recipe_that_counts_is_resolved_anew(
    tmp_path: Path, programs: Programs, more: dict[str, Any]
) -> None:
    one = builder(tmp_path)
    one.make(RECIPE, AT)
    programs.did()
    one.make(replace(RECIPE, **more), AT)
    assert programs.seen[0][0] == "lock"
    assert programs.seen[0][3] == (None if "relaxed" in more else module.until_of(AT))
    assert "lock" in programs.did()
    one.make(RECIPE, AT + 40 * 86_400)
    assert programs.did()[:1] == ["lock"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"environment": {}, "notes": []}', '{"environment": 1}'])
def test_a_damaged_file_of_what_was_resolved_is_written_again(
    tmp_path: Path, programs: Programs, text: str
) -> None:
    first = builder(tmp_path).make(RECIPE, AT)
    (kept,) = (tmp_path / "resolved").glob("*.json")
    whole = kept.read_bytes()
    kept.write_text(text)
    programs.did()
    assert builder(tmp_path).make(RECIPE, AT) == first
    assert programs.did() == ["lock"]
    assert kept.read_bytes() == whole
    assert json.loads(whole)["notes"] == ["no date"]


def test_a_problem_is_said_again_without_another_try_and_of_its_recipe_alone(
    tmp_path: Path, programs: Programs
) -> None:
    one = builder(tmp_path)
    programs.fails = "lock"
    for _ in range(2):
        with pytest.raises(BuildProblem, match=r"^cannot resolve soap$"):
            one.make(RECIPE, AT)
    assert programs.did() == ["lock"]
    assert list((tmp_path / "resolved").glob("*.work")) == []
    programs.fails = ""
    assert one.make(replace(RECIPE, dependencies=("lye",)), AT).built is not None


def test_a_full_disk_is_of_the_cache_and_no_problem_of_a_recipe(tmp_path: Path, programs: Programs) -> None:
    one = builder(tmp_path)
    programs.fails = "install"
    with pytest.raises(StoreError, match=r"cannot write the environments in .*No space left.*; make room"):
        one.make(RECIPE, AT)
    environment = Environment(python="3.11", lock=LOCK)
    with pytest.raises(StoreError, match=r"cannot write the environments in .*No space left.*; make room"):
        one.build(environment)
    programs.fails = ""
    assert one.make(RECIPE, AT).built is not None
    assert one.build(environment).stamp == stamp_of(environment)


def moved(folder: Path) -> None:
    (folder / VENV / "pyvenv.cfg").write_text("home = elsewhere\n")


def lost(folder: Path) -> None:
    (folder / VENV / "bin").rename(folder / VENV / "other")
    (folder / VENV / "bin").symlink_to("other")


@pytest.mark.parametrize(
    ("then", "why"),
    [
        (moved, "a set-up command changed the interpreter of the environment"),
        (lost, f"a set-up command made a link of {VENV}/bin"),
        (lambda folder: (folder / BUILT).touch(), f"a set-up command wrote {BUILT}"),
    ],
)
def test_a_set_up_that_leads_the_environment_elsewhere_builds_none(
    tmp_path: Path, programs: Programs, then: Any, why: str
) -> None:
    programs.then = then
    with pytest.raises(BuildProblem, match=why):
        builder(tmp_path).make(RECIPE, AT)


@pytest.mark.parametrize(("folder", "link"), [(".", "node_modules"), ("web", "web/node_modules")])
def test_packages_of_node_are_locked_where_no_lock_is_there(
    tmp_path: Path, programs: Programs, folder: str, link: str
) -> None:
    recipe = part(python=None, folder=folder, files={"package.json": "{}"}, setup=(("npm", "ci"),))
    made = builder(tmp_path).make(recipe, AT)
    assert made.environment is not None
    assert programs.did() == ["node", "setup"]
    assert (made.environment.links, made.notes) == ((link,), ("npm has no date",))
    assert made.environment.files == {"package.json": "{}", "package-lock.json": "{}"}
    for lock in ("package-lock.json", "npm-shrinkwrap.json"):
        locked = builder(tmp_path).make(replace(recipe, files={"package.json": "{ }", lock: "{}"}), AT)
        assert (programs.did(), locked.notes) == (["setup"], ())


def test_a_recipe_that_needs_nothing_has_no_environment(tmp_path: Path, programs: Programs) -> None:
    bare = part(python=None, imports=(".",), distributions={})
    assert builder(tmp_path).make(bare, AT) == module.MadeEnvironment()
    assert (programs.did(), list(tmp_path.iterdir())) == ([], [])
    assert builder(tmp_path).make(replace(bare, imports=("src",)), AT).built is not None
    assert builder(tmp_path).make(replace(bare, variables={"TZ": "UTC"}), AT).built is not None
    assert programs.did() == ["setup", "setup"]
    assert builder(tmp_path).interpreters == ("3.11", "3.12")


def test_what_no_file_can_hold_is_a_problem_of_the_recipe(tmp_path: Path, programs: Programs) -> None:
    with pytest.raises(
        BuildProblem, match=r"the recipe makes no valid environment: /variables: 'LD_PRELOAD'"
    ):
        builder(tmp_path).make(replace(RECIPE, variables={"LD_PRELOAD": "x"}), AT)
    assert programs.did() == ["lock"]
