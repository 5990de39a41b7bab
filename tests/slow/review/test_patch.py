"""The diff of a suite: git and patch make of the old files just the texts that are written."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.review.patch import TEXT, changed

from pytest_tfgrpo.review.patch import write_files

TEXT += "- {id: b, prompt: q, checks: [{kind: exact, value: y}]}"
TEXTS = {
    "plain": TEXT + "\n",
    "no line end": TEXT,
    "carriage returns": TEXT.replace("\n", "\r\n") + "\r\n",
    "odd line ends": TEXT.replace("value: y", 'value: "y\u2028\x85"') + "\n",
    "byte order mark": "\ufeff" + TEXT + "\n",
}
NAMES = ("a.scenario.yaml", "sub folder/é b.scenario.yaml", 'q"uote\t.scenario.yaml')


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(
    "program", [["git", "apply", "-p1", "-"], ["patch", "-p1", "--binary", "--quiet"]], ids=["git", "patch"]
)
def test_a_diff_makes_what_is_written(tmp_path: Path, name: str, text: str, program: list[str]) -> None:
    if shutil.which(program[0]) is None:
        pytest.skip(f"NOT TESTED: {program[0]} is not installed")
    one = changed(tmp_path, name, text)
    other = tmp_path / "other"
    (other / name).parent.mkdir(parents=True)
    shutil.copy(tmp_path / name, other / name)
    environ = {"PATH": os.environ["PATH"], "GIT_CEILING_DIRECTORIES": str(tmp_path)}
    subprocess.run(program, cwd=other, input=one.diff.encode(), check=True, env=environ)
    write_files([one])
    assert (tmp_path / name).read_bytes() == (other / name).read_bytes() != text.encode()
    assert (tmp_path / name).read_bytes().replace(b"'x: #'", b"x") == text.encode()
