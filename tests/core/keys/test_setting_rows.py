"""Rows of settings: typed keys, grouped by subject."""

import ast
import re
from pathlib import Path
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from support import ROOT

from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import whole
from pytest_tfgrpo.core.settings import TABLE, agents, gate, learning, permissions, resolve, runs, telemetry

FILES = (agents, learning, runs, permissions, gate, telemetry)
FOLDER = ROOT / "pytest_tfgrpo" / "core" / "settings"
DEPTH = Setting("depth", "none", whole(1), 7, "depth", "int")


def test_every_file_of_rows_is_part_of_the_table() -> None:
    files = {path.stem for path in FOLDER.glob("*.py")} - {"__init__"}
    assert files == {module.__name__.rpartition(".")[2] for module in FILES}
    assert [row for module in FILES for row in vars(module).values() if isinstance(row, Setting)] == [*TABLE]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[!_]*.py")), ids=lambda path: path.stem)
def test_a_file_of_rows_imports_nothing_but_what_makes_rows(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(isinstance(node, ast.ImportFrom) for node in imports)
    makers = {"pytest_tfgrpo.core.keys.setting", "pytest_tfgrpo.core.keys.setting_parsers"}
    assert {node.module for node in imports if isinstance(node, ast.ImportFrom)} <= {
        *makers, "__future__", "typing",
    }  # fmt: skip


def test_a_row_is_called_like_its_setting_and_knows_the_words_of_its_type() -> None:
    for module in FILES:
        hints = get_type_hints(module)
        for name, row in vars(module).items():
            if isinstance(row, Setting):
                assert name == row.name.upper()
                (hint,) = get_args(hints[name]) if name in hints else (object,)
                if get_origin(hint) is Literal:
                    with pytest.raises(
                        ValueError, match=re.escape(f"one of {', '.join(get_args(hint))}") + "$"
                    ):
                        row.parse("?")


def test_a_row_reads_its_value_and_knows_what_older_runs_lack() -> None:
    assert (DEPTH.of({"depth": 2}), DEPTH.recorded({"depth": 2})) == (2, 2)
    assert (DEPTH.of({}), DEPTH.recorded({})) == (7, None)
    assert learning.GROUP_SIZE.of(resolve({"group_size": "3"}, {}, {})) == 3
