"""What writes patterns, by learn.toml."""

from pathlib import Path

import pytest

from pytest_tfgrpo.cli.patterns.open_author import open_author
from pytest_tfgrpo.cli.project import open_project
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.patterns.learn_file import LearnSettings


def test_a_model_is_opened_only_if_it_is_named(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = open_project(repository, {}, {})
    with open_author(project, LearnSettings(), print) as author:
        assert author is not None
    with (
        pytest.raises(SettingError, match=r"learn\.toml: model: 'gpt' is none; write openai:<model>"),
        open_author(project, LearnSettings(model="gpt"), print),
    ):
        pass
