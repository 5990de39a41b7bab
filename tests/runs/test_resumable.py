"""Which run goes on, and why another cannot."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_tfgrpo.core.errors import ResumeError
from pytest_tfgrpo.runs import resumable
from pytest_tfgrpo.runs.resumable import find_resumable, is_concluded

STAMPS = {"settings": "s", "scenarios": "x", "eval": "e"}


class Runs:
    """Runs by their ids, the newest last."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root, self.logs, self.open = root, dict[str, Any](), set[Path]()
        monkeypatch.setattr(resumable, "list_runs", lambda out, task: [root / id_ for id_ in self.logs])
        monkeypatch.setattr(resumable, "read_to_resume", lambda folder: self.logs[folder.name])
        monkeypatch.setattr(resumable, "is_open", lambda path: path.parent in self.open)

    def add(self, id_: str, *, complete: bool = False, manifest: str | None = None, **header: Any) -> None:
        known = {"run_id": id_, "settings": {"eval_rollouts": 5}, "stamps": STAMPS}
        finish = {"finished_at": "now"} if complete else None
        self.logs[id_] = SimpleNamespace(header=known | header, complete=complete, finish=finish)
        (self.root / id_).mkdir(exist_ok=True)
        if manifest is not None:
            (self.root / id_ / "manifest.json").write_text(manifest)

    def find(self, wanted: str, **more: Any) -> str:
        stamps, unset = more.pop("stamps", STAMPS), more.pop("unset", "u")
        log = find_resumable(
            self.root, "demo", wanted, stamps, rollouts=more.pop("rollouts", 5), unset=unset, **more
        )
        return str(log.header["run_id"])


ENDED = json.dumps({"finished_at": "now"})


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("complete", "manifest", "concluded"),
    [
        (True, ENDED, True),
        (False, ENDED, False),
        (True, None, False),
        (True, json.dumps({"finished_at": "before"}), False),
        (True, "{", False),
        (True, "[]", False),
        (True, "{}", False),
        (True, "5", False),
    ],
)
def test_a_run_is_concluded_once_the_reports_of_this_end_are_written(
    runs: Runs, complete: bool, manifest: str | None, concluded: bool
) -> None:
    runs.add("1", complete=complete, manifest=manifest)
    assert is_concluded(runs.root / "1", cast(Any, runs.logs["1"])) is concluded


def test_a_run_that_ended_before_it_was_complete_is_not_concluded(runs: Runs) -> None:
    runs.add("1", manifest=ENDED)
    runs.logs["1"].finish = {"finished_at": "now"}
    assert not is_concluded(runs.root / "1", cast(Any, runs.logs["1"]))


def test_the_latest_is_the_newest_that_is_not_concluded(runs: Runs) -> None:
    runs.add("1")
    runs.add("2")
    runs.add("3", complete=True, manifest=ENDED)
    assert runs.find("latest") == "2"
    runs.add("4", complete=True)
    assert runs.find("latest") == "4"
    runs.logs = {"3": runs.logs["3"]}
    with pytest.raises(ResumeError, match=r"no incomplete run under .*leave --tfgrpo-resume out"):
        runs.find("latest")


def test_the_latest_goes_on_only_with_what_it_began_with(runs: Runs) -> None:
    runs.add("1")
    runs.add("2", stamps=STAMPS | {"packs": "p"})
    with pytest.raises(ResumeError, match="run 2 cannot be resumed: packs changed since"):
        runs.find("latest")


def test_a_run_that_is_named_is_found_and_may_be_concluded_only_to_run_again(runs: Runs) -> None:
    for n in range(1, 8):
        runs.add(f"r{n}", complete=n == 2, manifest=ENDED)
    assert runs.find("r1") == "r1"
    with pytest.raises(ResumeError, match="run r2 is complete; leave --tfgrpo-resume out"):
        runs.find("r2")
    assert runs.find("r2", again=True) == "r2"
    with pytest.raises(ResumeError, match=r"no run 'x' under .*\(latest: r3, r4, r5, r6, r7\)"):
        runs.find("x")
    runs.logs = {}
    with pytest.raises(ResumeError, match=r"\(latest: none\)"):
        runs.find("x")


def test_a_run_that_goes_on_or_lies_in_another_folder_is_refused(runs: Runs) -> None:
    runs.add("1")
    runs.open = {runs.root / "1"}
    with pytest.raises(ResumeError, match="run 1 cannot be resumed: another process"):
        runs.find("1")
    runs.add("2", run_id="other")
    with pytest.raises(ResumeError, match="is the journal of run 'other'; rename its folder to that"):
        runs.find("2")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, ""),
        ({"stamps": STAMPS | {"eval": "another"}}, ""),
        ({"stamps": STAMPS | {"scenarios": "y", "packs": "p"}}, "packs, scenarios changed since"),
        ({"stamps": {"settings": "s", "eval": "e"}}, "scenarios changed since"),
        ({"stamps": STAMPS | {"settings": "t"}}, "settings changed since"),
        ({"stamps": STAMPS | {"settings": "t"}, "unset": "s"}, ""),
        ({"rollouts": 6}, "its sweeps have 5 rollouts of each scenario, not 6; set eval_rollouts = 5"),
        ({"rollouts": 4}, "its sweeps have 5 rollouts of each scenario, not 4; set eval_rollouts = 5"),
    ],
)
def test_a_run_goes_on_with_what_it_began_with(runs: Runs, more: dict[str, Any], message: str) -> None:
    runs.add("1")
    if not message:
        assert runs.find("1", **more) == "1"
        return
    with pytest.raises(ResumeError, match=message):
        runs.find("1", **more)


def test_a_run_whose_settings_named_no_rollouts_goes_on_with_any(runs: Runs) -> None:
    runs.add("1", settings={"eval_rollouts": None})
    assert runs.find("1", rollouts=9) == "1"
