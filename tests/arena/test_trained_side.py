"""What a side trained, on file: read back as it was, with what it made as files to use."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from support.builders import make_experience, make_pack

from pytest_tfgrpo.arena.protocol import Trained
from pytest_tfgrpo.arena.trained_side import SideCost, TrainedSide, files_of, keep_side, read_side
from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.learning.library.library import load_library, of

SIDE = TrainedSide(
    trained=Trained(
        library=of([make_experience(1), make_experience(2)]),
        packs={name: make_pack(name) for name in ("text", "dates")},
        note="a note",
        teacher_limited=True,
    ),
    spent=SideCost(rollouts=60, teacher_calls=7, usd=None, known_usd=0.25, tokens=900),
    wall_s=2.5,
    failed="no luck",
    bug="Traceback",
)


def test_a_side_is_read_back_as_it_was_kept_with_its_library_and_every_pack(tmp_path: Path) -> None:
    assert (read_side(tmp_path, "llm"), files_of(tmp_path, "llm")) == (None, ())
    keep_side(tmp_path, "llm", SIDE)
    assert read_side(tmp_path, "llm") == SIDE
    assert load_library(tmp_path / "sides" / "llm" / "library.json") == SIDE.trained.library
    assert files_of(tmp_path, "llm") == (
        "sides/llm/library.json",
        "sides/llm/prompt-packs/dates/manifest.json",
        "sides/llm/prompt-packs/text/manifest.json",
    )
    keep_side(tmp_path, "llm", replace(SIDE, failed=""))
    again = read_side(tmp_path, "llm")
    assert again is not None
    assert again.failed == ""


def test_a_placebo_and_a_side_without_lessons_make_no_library(tmp_path: Path) -> None:
    keep_side(tmp_path, "placebo", replace(SIDE, trained=replace(SIDE.trained, packs={})))
    keep_side(tmp_path, "none", TrainedSide(trained=Trained(), spent=SideCost(), wall_s=0.0))
    assert files_of(tmp_path, "placebo") == files_of(tmp_path, "none") == ()
    read = read_side(tmp_path, "placebo")
    assert read is not None
    assert read.trained.library == SIDE.trained.library


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "tfgrpo.arena-side/1"}', "other"])
def test_a_side_that_cannot_be_read_is_an_error_that_names_its_file(tmp_path: Path, text: str) -> None:
    keep_side(tmp_path, "llm", SIDE)
    path = tmp_path / "sides" / "llm" / "trained.json"
    other = json.dumps({**json.loads(path.read_text()), "schema": "tfgrpo.arena-side/2"})
    path.write_text(other if text == "other" else text)
    with pytest.raises(JournalError, match=rf"^{re.escape(str(path))}: .*; start a new arena$"):
        read_side(tmp_path, "llm")
