"""A command's JUnit XML is its report; what is no such file, or lacks our tests, is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_tfgrpo.scoring.runners.command import command_line


@pytest.mark.parametrize(
    ("folder", "words"),
    [
        (".", ["run", "/r/report.xml", "web/a.js", "lib/b.js"]),
        ("web", ["run", "/r/report.xml", "a.js", "../lib/b.js"]),
        ("web/x", ["run", "/r/report.xml", "../a.js", "../../lib/b.js"]),
    ],
)
def test_files_are_named_as_seen_from_the_folder(folder: str, words: list[str]) -> None:
    run = ("run", "{report}", "{tests}")
    assert command_line(run, Path("/r/report.xml"), ("web/a.js", "lib/b.js"), folder) == words


def test_a_file_that_begins_with_a_dash_is_no_option() -> None:
    run = ("run", "--out={report}", "{tests}")
    assert command_line(run, Path("/r"), ("--help.js",), ".") == ["run", "--out=/r", "./--help.js"]


def test_files_within_a_word_are_parted_by_spaces() -> None:
    run = ("run", "{report}", "--in={tests}")
    words = ["run", "/r", "--in=web/a.js lib/b.js"]
    assert command_line(run, Path("/r"), ("web/a.js", "lib/b.js"), ".") == words
