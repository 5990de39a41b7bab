"""The check on a file in the workspace: golden, pattern or text, and no way out of the workspace."""

import os

import pytest

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.scoring.checks.registry import KINDS


def test_a_golden_text_is_compared_line_by_line_whatever_the_line_ends(judge, folder, workspace):
    (folder / "golden.txt").write_bytes(b"one\ntwo\n")
    for written, reason in [
        (b"one\ntwo\n", ""),
        (b"one\r\ntwo\r\n", ""),
        (b"one\rtwo\r", ""),
        (b"\xef\xbb\xbfone\ntwo\n", ""),
        (b"one\nTwo\n", "'out.txt' line 2: expected 'two', got 'Two'"),
        (b"one\ntwo", "'out.txt': expected 3 lines, got 2"),
        (b"\xff", "'out.txt' differs from 'golden.txt'"),
    ]:
        (workspace / "out.txt").write_bytes(written)
        assert judge("file", path="out.txt", golden="golden.txt").reason == reason


def test_a_golden_file_that_is_not_text_is_compared_byte_by_byte(judge, folder, workspace):
    (folder / "golden.bin").write_bytes(b"\xff\r\n")
    (workspace / "out.bin").write_bytes(b"\xff\r\n")
    assert judge("file", path="out.bin", golden="golden.bin").passed
    (workspace / "out.bin").write_bytes(b"\xff\n")
    assert judge("file", path="out.bin", golden="golden.bin").reason == "'out.bin' differs from 'golden.bin'"


def test_a_large_golden_text_is_compared_too(judge, folder, workspace):
    (folder / "golden.txt").write_text("line\n" * 50_000)
    (workspace / "out.txt").write_text("line\n" * 50_000)
    assert judge("file", path="out.txt", golden="golden.txt").passed
    (workspace / "out.txt").write_text("line\n" * 49_999)
    assert not judge("file", path="out.txt", golden="golden.txt").passed


def test_the_line_is_named_far_into_a_golden_text(judge, folder, workspace):
    (folder / "golden.txt").write_text("line\n" * 19_000)
    (workspace / "out.txt").write_text("line\n" * 18_000 + "end\n" + "line\n" * 999)
    reason = judge("file", path="out.txt", golden="golden.txt").reason
    assert reason == "'out.txt' line 18001: expected 'line', got 'end'"


def test_lines_of_a_golden_text_are_answers_without_the_space_around_them(load, folder):
    (folder / "golden.txt").write_text("\n  one\n\ttwo \none\n")
    assert KINDS["file"].answers(load("file", path="out.txt", golden="golden.txt")) == ("one", "two")
    (folder / "golden.txt").write_text("".join(f"line {n}\n" for n in range(1_500)))
    known = KINDS["file"].answers(load("file", path="out.txt", golden="golden.txt"))
    assert known == tuple(f"line {n}" for n in range(1_000))
    assert KINDS["file"].answers(load("file", path="out.txt", contains="x")) == ("x",)


@pytest.mark.parametrize(
    ("params", "key"),
    [
        ({"path": "../out.txt", "contains": "x"}, "path"),
        ({"path": "out.txt", "golden": "none.txt"}, "golden"),
        ({"path": "out.txt", "golden": "../none.txt"}, "golden"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_by_its_key(load, params, key):
    with pytest.raises(ScenarioError, match=f"#/checks/0/{key}: "):
        load("file", **params)


def test_a_golden_file_is_known_by_its_stamp(load, folder):
    (folder / "golden.txt").write_text("one\n")
    check = load("file", path="out.txt", golden="golden.txt")
    assert check.params["golden_sha256"] == stamp_bytes(b"one\n")
    assert KINDS["file"].answers(check) == ("one",)


def test_pattern_and_text_are_found_in_the_file(judge, workspace):
    (workspace / "sub").mkdir()
    (workspace / "sub" / "out.txt").write_text("total: 42\n")
    assert judge("file", path="sub/out.txt", pattern=r"total: \d+").passed
    assert judge("file", path="sub/out.txt", contains="42").passed
    result = judge("file", path="sub/out.txt", contains="43")
    assert result.reason == "expected '43' in 'sub/out.txt', got 'total: 42\\n'"
    assert "expected a match of '43'" in judge("file", path="sub/out.txt", pattern="43").reason


def test_a_missing_file_gives_no_credit(judge):
    reason = "expected a file 'sub/out.txt' in the workspace, there is none"
    assert judge("file", path="sub/out.txt", contains="x").reason == reason


def test_bytes_are_not_text(judge, workspace):
    (workspace / "out").write_bytes(b"\xff")
    assert judge("file", path="out", contains="x").reason == "'out' is not UTF-8 text"
    assert judge("file", path="out", contains="x", **{"not": True}).credit == 0


def test_no_link_leads_out_of_the_workspace(judge, workspace, tmp_path):
    (tmp_path / "secret").write_text("x")
    (workspace / "out").symlink_to(tmp_path / "secret")
    assert "without following links" in judge("file", path="out", contains="x").reason
    (workspace / "up").symlink_to(tmp_path)
    assert "without following links" in judge("file", path="up/secret", contains="x").reason


def test_a_link_in_place_of_the_workspace_is_not_followed(judge, workspace, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "out").write_text("x")
    workspace.rmdir()
    workspace.symlink_to(tmp_path / "elsewhere")
    assert judge("file", path="out", contains="x").reason.endswith("in the workspace, there is none")


def test_a_pipe_a_folder_and_a_huge_file_give_no_credit(judge, workspace):
    os.mkfifo(workspace / "pipe")
    (workspace / "folder").mkdir()
    with (workspace / "huge").open("wb") as huge:
        huge.truncate(10_000_001)
    reasons = [judge("file", path=name, contains="x").reason for name in ("pipe", "folder", "huge")]
    assert reasons == [
        "'pipe' is not a regular file",
        "'folder' is not a regular file",
        "'huge' has 10000001 bytes, more than 10000000",
    ]
    for name in ("pipe", "folder", "huge"):
        assert judge("file", path=name, contains="x", **{"not": True}).credit == 0


def test_a_file_in_place_of_a_folder_gives_no_credit(judge, workspace):
    (workspace / "sub").write_text("x")
    assert not judge("file", path="sub/out", contains="x").passed
