"""Steps of a world, as scenario files name them."""

import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_tfgrpo.core.scenarios import WorldStep
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire
from pytest_tfgrpo.scoring.checks.protocol import BadParam
from pytest_tfgrpo.suite.world_steps import read_step

CODE = "def up(context): pass\n"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Name a module that no test imports but the one that asks for it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield "world_of_steps"
    for name in [name for name in sys.modules if name.partition(".")[0] == "world_of_steps"]:
        del sys.modules[name]


def written(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(CODE)
    return path


@pytest.mark.parametrize("file", ["{}.py", "{}/__init__.py"])
@pytest.mark.parametrize("other", ["{}.py", "{}/__init__.py"])
def test_a_module_of_another_folder_is_refused(tmp_path: Path, module: str, file: str, other: str) -> None:
    first = written(tmp_path / "a" / file.format(module))
    written(tmp_path / "b" / other.format(module))
    step = {"python": f"{module}:up"}
    assert read_step(step, tmp_path / "a").target == f"{module}:up"
    with pytest.raises(BadParam, match="not beside the scenario; rename one") as error:
        read_step(step, tmp_path / "b")
    assert str(first) in str(error.value)


def test_a_module_of_an_archive_is_not_the_one_beside_the_scenario(tmp_path: Path, module: str) -> None:
    archive = tmp_path / "steps.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(f"{module}.py", CODE)
    sys.path.insert(0, str(archive))
    step = {"python": f"{module}:up"}
    assert read_step(step, tmp_path).target == f"{module}:up"
    written(tmp_path / "b" / f"{module}.py")
    with pytest.raises(BadParam, match=r"was found in .*steps\.zip.*; rename one"):
        read_step(step, tmp_path / "b")


def test_a_module_of_python_itself_is_not_the_one_beside_the_scenario(tmp_path: Path) -> None:
    written(tmp_path / "b" / "time.py")
    with pytest.raises(BadParam, match=r"'time:sleep' was found elsewhere, not beside the scenario"):
        read_step({"python": "time:sleep"}, tmp_path / "b")


@pytest.mark.parametrize(
    ("command", "files"),
    [
        (["sh", "fill.sh"], ["fill.sh"]),
        (["sh", "./fill.sh", "fill.sh", "./fill.sh"], ["./fill.sh", "fill.sh"]),
        (["./fill.sh", "-x"], ["./fill.sh"]),
        (["fill.sh", "x"], []),  # a program without a slash is looked for on PATH
        (["sh", "sub/../fill.sh"], ["sub/../fill.sh"]),
        (["sh", "../fill.sh", "/etc/passwd", "none", "sub", "x" * 5000], []),
    ],
)
def test_the_words_of_a_command_that_name_files_beside_it(
    tmp_path: Path, command: list[str], files: list[str]
) -> None:
    (tmp_path / "fill.sh").write_text("exit 0\n")
    (tmp_path / "sub").mkdir()
    step = read_step({"command": command}, tmp_path)
    assert [file.name for file in step.files] == files
    assert {file.path for file in step.files} <= {tmp_path / "fill.sh"}
    assert (step.command, step.timeout_s) == (tuple(command), 60.0)


def test_a_file_of_a_step_has_10_megabytes_at_most_and_stays_in_its_folder(tmp_path: Path) -> None:
    with (tmp_path / "big").open("wb") as file:
        file.truncate(10_000_000)
    assert read_step({"command": ["sh", "big"]}, tmp_path).files
    with (tmp_path / "big").open("wb") as file:
        file.truncate(10_000_001)
    with pytest.raises(BadParam, match="'big' has 10000001 bytes, more than 10000000") as error:
        read_step({"command": ["sh", "big"]}, tmp_path)
    assert error.value.key == "command"
    (tmp_path / "link").symlink_to("/etc/passwd")
    with pytest.raises(BadParam, match="'link' is a link that leaves its folder"):
        read_step({"command": ["sh", "link"]}, tmp_path)


def test_the_code_of_a_step_is_part_of_it_where_it_is_the_projects(tmp_path: Path, module: str) -> None:
    file = tmp_path / f"{module}.py"

    def read(code: str) -> WorldStep:
        file.write_text(code)
        sys.modules.pop(module, None)
        return read_step({"python": f"{module}:up"}, tmp_path)

    first = read(CODE)
    assert first.content == {"python": f"{module}:up", "sha256": stamp_bytes(CODE.encode())}
    assert read(CODE) == first
    assert read(CODE + "# else").content != first.content
    assert read(CODE + "# else").written == first.written
    assert from_wire(WorldStep, json.loads(json.dumps(to_wire(first)))) == first
    assert read_step({"python": "json:dumps"}, tmp_path).content == {"python": "json:dumps"}
