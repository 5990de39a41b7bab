"""The actor ``reference`` leaves the files that the true fix left."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.builders import make_scenario
from support.projects_in_archives import write_archive

from pytest_tfgrpo.actors.reference import NothingActor, ReferenceActor, removed_files
from pytest_tfgrpo.core.errors import ActorError, ProviderError
from pytest_tfgrpo.protocols import ActorCall
from pytest_tfgrpo.sandbox.workspace import Workspace


def fixed(tmp_path: Path, make_call: Callable[..., ActorCall], *removed: str, **files: str) -> dict[str, str]:
    """Return the files of a workspace with ``shop.py`` and ``old.py`` once a fix is applied."""
    archive = write_archive(tmp_path / "archives" / "a.base.tar.gz", {"shop.py": "1", "old.py": "2"})
    write_archive(
        tmp_path / "references" / "count-words.tar.gz", {n.replace("__", "/"): t for n, t in files.items()}
    )
    (tmp_path / "provenance").mkdir()
    (tmp_path / "provenance" / "count-words.json").write_text(json.dumps({"removed": removed}))
    work = tmp_path / "work"
    asyncio.run(ReferenceActor()(make_call(workspace=Workspace(work, archive=archive))))
    return {str(path.relative_to(work)): path.read_text() for path in work.rglob("*.py") if path.is_file()}


def test_files_are_written_and_removed(tmp_path: Path, make_call: Callable[..., ActorCall]) -> None:
    assert fixed(tmp_path, make_call, "old.py", **{"shop.py": "3"}) == {"shop.py": "3"}


def test_a_file_that_became_a_folder_keeps_what_is_in_it(
    tmp_path: Path, make_call: Callable[..., ActorCall]
) -> None:
    assert fixed(tmp_path, make_call, "old.py", **{"old.py__new.py": "3"}) == {
        "shop.py": "1",
        "old.py/new.py": "3",
    }


def test_a_removed_file_outside_of_the_workspace_is_refused(
    tmp_path: Path, make_call: Callable[..., ActorCall]
) -> None:
    with pytest.raises(ProviderError, match="cannot use the reference of 'count-words'"):
        fixed(tmp_path, make_call, "../archives/a.base.tar.gz", **{"shop.py": "3"})
    assert (tmp_path / "archives" / "a.base.tar.gz").exists()


def test_a_provenance_that_cannot_be_read_is_no_fix_that_removes_nothing(tmp_path: Path) -> None:
    assert removed_files(tmp_path / "none.json") == []
    with pytest.raises(OSError, match="directory"):
        removed_files(tmp_path)
    (tmp_path / "p.json").write_text('{"removed": "old.py"}')
    with pytest.raises(ValueError, match="removed must be a list of names"):
        removed_files(tmp_path / "p.json")


@pytest.mark.parametrize("text", ["[]", "3", '"old.py"', '{"removed": ["old.py", 3]}', '{"removed": null}'])
def test_a_provenance_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.json").write_text(text)
    with pytest.raises(ValueError, match=r"p\.json: removed must be a list of names; restore the file"):
        removed_files(tmp_path / "p.json")
    (tmp_path / "p.json").write_text('{"other": 1}')
    assert removed_files(tmp_path / "p.json") == []


def test_a_scenario_without_a_reference_is_named_before_the_run(
    tmp_path: Path, make_call: Callable[..., ActorCall]
) -> None:
    archive = write_archive(tmp_path / "archives" / "a.base.tar.gz", {"shop.py": "1"})
    actor = ReferenceActor()
    with pytest.raises(ActorError, match=r"'a' \(a\.yaml:1\) has no workspace, and so no reference"):
        actor.require_references([make_scenario("a", source="a.yaml:1")])
    harvested = make_scenario("a", source="a.yaml:1", workspace=archive)
    with pytest.raises(ActorError, match=r"there is no '.*/references/a\.tar\.gz'; restore it, or choose"):
        actor.require_references([harvested])
    write_archive(tmp_path / "references" / "a.tar.gz", {})
    actor.require_references([harvested])
    with pytest.raises(ProviderError, match="'count-words' has no workspace") as failed:
        asyncio.run(actor(make_call(workspace=Workspace(tmp_path / "work"))))
    assert failed.value.code == "reference"


def test_what_these_agents_cost_is_nothing_and_nothing_answers_every_message(
    make_call: Callable[..., ActorCall],
) -> None:
    for actor in (ReferenceActor(), NothingActor()):
        assert (actor.bound(1000), actor.paid) == ({"usd": 0.0, "tokens": 0.0}, False)
        asyncio.run(actor.aclose())
    nothing = NothingActor()
    call = make_call()
    assert (
        asyncio.run(nothing(call)).answer == asyncio.run(nothing.open_session(call).answer("x")).answer == ""
    )
