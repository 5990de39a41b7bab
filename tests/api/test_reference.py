"""The page on the Python API names each field that an agent reads, each part of a result, each column."""

import dataclasses
import inspect
from pathlib import Path

import pytest
from support import ROOT
from support.api import SUITE, Counter

import pytest_tfgrpo as tfgrpo

PAGE = (ROOT / "docs" / "python-api.md").read_text("utf-8")


def public(made: type) -> set[str]:
    """Return the fields, properties and methods of a class that are for everybody."""
    fields = {field.name for field in dataclasses.fields(made)}
    members = {
        name for name, one in vars(made).items() if inspect.isfunction(one) or isinstance(one, property)
    }
    return {name for name in fields | members if not name.startswith("_")}


@pytest.mark.parametrize("made", [tfgrpo.AgentContext, tfgrpo.RunResult, tfgrpo.RunResults])
def test_the_page_names_what_there_is(made: type) -> None:
    named = {name for name in public(made) if f"`{name}`" in PAGE or f"`{name}()`" in PAGE}
    assert public(made) - named == {"results"} & public(made)


def test_the_page_names_each_column_of_a_row(tmp_path: Path) -> None:
    row, *_ = tfgrpo.run(tmp_path, SUITE, actor=Counter(), learning=False).rows()
    assert [name for name in row if f"`{name}`" not in PAGE] == ["check.exact"]
