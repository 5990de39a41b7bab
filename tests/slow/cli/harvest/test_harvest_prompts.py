"""``tfgrpo harvest --issues --statement``: what is wrong is said before any test runs."""

from pathlib import Path

import pytest
from support.repositories import Repository
from support.tools import tfgrpo


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    Repository(tmp_path / "shop").commit({"a.py": "1\n"})
    monkeypatch.chdir(tmp_path)
    return tmp_path


ARGUMENTS = ("harvest", "--repo", "shop", "--from-git", "main", "--into", "suite")


def test_prompts_of_a_model_need_one(project: Path) -> None:
    said = tfgrpo(*ARGUMENTS, "--statement", "model", code=1)
    assert "--statement model needs a language model" in said
    assert "tfgrpo_teacher" in said
    assert not (project / "suite").exists()


def test_a_model_without_a_key_is_refused_before_the_harvest(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    (project / "pytest.ini").write_text("[pytest]\ntfgrpo_teacher = openai:some-model\n")
    assert "OPENAI_API_KEY" in tfgrpo(*ARGUMENTS, "--statement", "model", code=1)
