"""The command ``tfgrpo safety``: what it writes where, and what it does not overwrite."""

import json
from pathlib import Path

import pytest
from support.tools import tfgrpo


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def test_one_file_that_is_there_stops_all_before_anything_is_written(here: Path) -> None:
    tfgrpo("safety", "--to", "mine")
    first, *_, last = sorted((here / "mine").iterdir())
    for file in (here / "mine").iterdir():
        if file != last:
            file.unlink()
    assert f"mine/{last.name} exists; remove it, or name another folder with --to" in tfgrpo(
        "safety", "--to", "mine", code=1
    )
    assert not first.exists()


@pytest.mark.parametrize(
    ("options", "end"),
    [((), "my suite' --tfgrpo-judge=openai:MODEL\n"), (("--without-judge",), "my suite'\n")],
)
def test_the_next_command_names_a_judge_where_one_decides(options: tuple[str, ...], end: str) -> None:
    said = tfgrpo("safety", "--to", "my suite", *options)
    assert said.endswith(f"next: pytest '{end}")
    assert ("decided by a judge" in said) is not bool(options)


def test_a_pack_of_any_domain_names_none(here: Path) -> None:
    tfgrpo("init")
    tfgrpo("safety", "--to", "mine")
    found = [one for file in (here / "mine").iterdir() for one in json.loads(file.read_text())]
    assert {one["domain"] for one in found} == {"general"}
