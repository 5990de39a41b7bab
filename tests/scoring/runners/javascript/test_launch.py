"""A launch of a JavaScript runner, with its attempts scripted: links, and what a test that hangs costs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.scoring.runners.javascript import launch as module
from pytest_tfgrpo.scoring.runners.javascript.launch import Launched, launch, link_environment
from pytest_tfgrpo.scoring.runners.javascript.outcomes import Reported
from pytest_tfgrpo.scoring.runners.protocol import RunProblem, SuiteCommand, SuiteRequest


def request(tree: Path, links: dict[str, Path] | None = None, **changes: Any) -> SuiteRequest:
    environment: Any = None if links is None else SimpleNamespace(links=links, readable=())
    command = SuiteCommand(runner="vitest")
    return SuiteRequest(tree=tree, command=command, timeout_s=5, environment=environment, **changes)


def attempts(monkeypatch: pytest.MonkeyPatch, *blamed: tuple[str, str] | None) -> list[list[tuple[str, str]]]:
    """Let each attempt blame a test in turn; return which tests each was to leave out."""
    seen: list[list[tuple[str, str]]] = []
    left = list(blamed)

    class Attempt:
        def __init__(self, _: SuiteRequest, folder: Path, hung: list[tuple[str, str]]) -> None:
            assert folder.is_dir()
            seen.append(list(hung))
            self.blamed = left.pop(0)

        def run(self, argv: list[str], files: Any, deadline: float) -> Launched:
            assert (argv, files, deadline) == (["/bin/node", "x"], ("a",), 9.0)
            return Launched(reported=Reported(), detail=f"attempt {len(seen)}")

    monkeypatch.setattr(module, "_Attempt", Attempt)
    monkeypatch.setattr(module, "node_of", lambda _: "/bin/node")
    return seen


def run(tree: Path) -> Launched:
    return launch(request(tree), lambda node: [node, "x"], ("a",), 9.0)


def test_a_run_begins_anew_without_each_test_that_hung(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = ("a", "t1"), ("a", "t2")
    seen = attempts(monkeypatch, one, two, None)
    assert run(tmp_path).detail == "attempt 3"
    assert seen == [[], [one], [one, two]]
    seen = attempts(monkeypatch, one, one)
    assert run(tmp_path).detail == "attempt 2", "one that was left out and hangs all the same ends it"
    seen = attempts(monkeypatch, *((("a", f"t{n}")) for n in range(module.HUNG_MAX + 1)))
    run(tmp_path)
    assert len(seen) == module.HUNG_MAX + 1


def test_without_node_nothing_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = attempts(monkeypatch)
    monkeypatch.setattr(module, "node_of", lambda _: None)
    found = run(tmp_path)
    assert (found.problem, found.detail) == (RunProblem.NO_RUNNER, "node is not installed; install nodejs")
    assert seen == []


def test_links_of_an_environment_take_the_place_of_what_the_project_has(tmp_path: Path) -> None:
    store, tree, away = (tmp_path / name for name in ("store", "tree", "away"))
    for folder in (store / "pkg", tree / "node_modules" / "old", tree / "web", away):
        folder.mkdir(parents=True)
    (store / "tool").write_text("tool")
    (tree / "bin").symlink_to(away)
    (tree / "file").write_text("own")
    (tree / "out").symlink_to(away)
    links = {
        "node_modules": store,
        "web/deep/tool": store / "tool",
        "bin": store,
        "file": store / "tool",
        "out/x": store,
    }
    link_environment(request(tree, links))
    assert sorted(path.name for path in (tree / "node_modules").iterdir()) == ["pkg", "tool"]
    assert not (tree / "node_modules").is_symlink(), "runners keep files of their own there"
    assert (tree / "node_modules" / "pkg").readlink() == store / "pkg"
    assert (tree / "web" / "deep" / "tool").readlink() == store / "tool"
    assert (tree / "bin" / "tool").read_text() == (tree / "file").read_text() == "tool"
    assert list(away.iterdir()) == [], "nothing is written where a link leads out of the tree"
    link_environment(request(tree))


def test_the_program_is_told_what_to_run_and_its_workers_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REPORT_MAX", 3)
    attempt = module._Attempt(request(tmp_path / "tree", hang_s=None), tmp_path, [("a", "t")])
    told = json.loads(attempt._settings(("a.js", "b.js")))
    shared = json.loads((tmp_path / "worker.json").read_text())
    assert told["files"] == [f"{tmp_path}/tree/a.js", f"{tmp_path}/tree/b.js"]
    assert told["hung"] == [["a", "t"]]
    assert told["key"] == attempt._key.hex()
    assert told["passing"]
    assert "key" not in shared
    assert "early" not in shared
    assert shared.items() <= told.items()
    quiet = module._Attempt(request(tmp_path / "tree", canary=False), tmp_path, [])
    plain = json.loads(quiet._settings(()))
    assert (plain["passing"], plain["failing"]) == ("", "")
    assert attempt._deadline() == math.inf
    attempt.blamed = ("a", "t")
    assert attempt._deadline() == 0.0
    assert attempt._receive(b"xyz")
    assert not attempt._receive(b"x")


@pytest.mark.parametrize("stopped", ["time", "exchange"])
def test_how_an_attempt_ended_is_a_problem(tmp_path: Path, stopped: str) -> None:
    def judged(**ended: Any) -> Launched:
        attempt = module._Attempt(request(tmp_path), tmp_path, [])
        attempt._receive(ended.pop("report", b""))
        own: Any = {"code": 0, "output": " said\n", "elapsed_s": 1.0, "stopped": ""}
        return attempt._judged(module.IsolatedRun(**{**own, **ended}))

    assert judged(report=b"forged {}\n").problem is RunProblem.TAMPERED
    assert (judged(stopped=stopped).problem, judged(stopped=stopped).detail) == (RunProblem.TIMEOUT, "said")
    assert judged(stopped=stopped, output="").detail == "it took too long"
    assert judged().problem is not None
    assert judged().detail.endswith("\nsaid")
