"""Names from hostile input stay in their folder."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.files import JOURNAL, JOURNAL_START
from pytest_tfgrpo.sandbox.paths import (
    check_name,
    confined,
    few_files,
    holds_journal,
    read_untrusted,
    walk,
    walk_entries,
    write_untrusted,
)


@pytest.mark.parametrize(
    "name",
    [
        "", ".", "..", "/", "/a", "//a", "a/", "a//b", "./a", "a/.", "../a", "a/../b", "a/..", "a\\b", "a\0b",
        "a\nb", "a\u202eb",
    ],
)  # fmt: skip
def test_a_name_that_is_no_plain_relative_path_is_refused(name):
    with pytest.raises(ValueError, match="must be a plain relative path that stays in its folder"):
        check_name(name)


@pytest.mark.parametrize("name", ["a", "a/b", "a b", ".hidden", "..a", "a..", "ü/ñ.csv"])
def test_a_plain_relative_path_is_accepted(name):
    check_name(name)


parts = st.sampled_from(["a", "..", ".", "", "in", "out", "/", "link"])


@reaches("inside", "refused", "missing")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.lists(parts, min_size=1, max_size=5).map("/".join) | st.sampled_from(["in", "a/a", "a/in", "b"]))
def test_nothing_outside_the_folder_is_ever_read(tmp_path, name):
    folder = tmp_path / "in"
    if not folder.exists():
        (folder / "a").mkdir(parents=True)
        for path in (folder / "in", folder / "a" / "a"):
            path.write_text("inside")
        for path in (tmp_path / "a", tmp_path / "out"):
            path.write_text("outside")
        (folder / "out").symlink_to(tmp_path / "out")
        (folder / "link").symlink_to(tmp_path)
    for read in (lambda: confined(folder, name, 99).read_bytes(), lambda: read_untrusted(folder, name, 99)):
        try:
            assert read() == b"inside"
            reached("inside")
        except FileNotFoundError:
            reached("missing")
        except ValueError:
            reached("refused")


def test_no_descriptor_is_left_open(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_text("x")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for name in ("sub/a", "sub", "sub/none", "none/a", "sub/a/b"):
        try:
            read_untrusted(tmp_path, name, 99)
        except (ValueError, FileNotFoundError):
            continue
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize(
    ("folder", "start", "holds"),
    [
        ("runs/r1", JOURNAL_START + b"more", True),
        ("elsewhere/r1", JOURNAL_START + b"more", True),
        ("runs/r1", JOURNAL_START[:5], True),  # its process was killed as it began
        ("runs/r1", b"", True),
        ("elsewhere/r1", JOURNAL_START[:5], False),
        ("elsewhere/r1", b"", False),
        ("runs/r1", b"anything else of the name", False),
    ],
)
def test_a_run_is_known_by_its_journal_also_where_that_has_just_begun(tmp_path, folder, start, holds):
    place = tmp_path / folder
    place.mkdir(parents=True)
    assert not holds_journal(place)
    (place / JOURNAL).write_bytes(start)
    assert holds_journal(place) is holds


def test_a_file_is_written_below_the_folders_on_the_way_and_over_what_is_there(tmp_path):
    for data in (b"one", b"two"):
        write_untrusted(tmp_path, "a/b/c.txt", data)
        assert (tmp_path / "a/b/c.txt").read_bytes() == data
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "b", "c.txt"]
    (tmp_path / "out").mkdir()
    (tmp_path / "a/link").symlink_to(tmp_path / "out")
    with pytest.raises(ValueError, match="cannot be written without following links"):
        write_untrusted(tmp_path, "a/link/x", b"x")
    with pytest.raises(ValueError, match="cannot be written without following links"):
        write_untrusted(tmp_path, "a/b", b"x")
    assert list((tmp_path / "out").iterdir()) == []
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["b", "link"]


def test_a_folder_that_is_reached_through_a_link_has_its_files(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("a")
    (tmp_path / "link").symlink_to("real")
    assert confined(tmp_path / "link", "a.txt", 9).read_text() == "a"
    (tmp_path / "real" / "out.txt").symlink_to(tmp_path / "b.txt")
    (tmp_path / "b.txt").write_text("b")
    with pytest.raises(ValueError, match="is a link that leaves its folder"):
        confined(tmp_path / "link", "out.txt", 9)


def test_a_file_as_large_as_it_may_be_is_confined(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("12345")
    assert confined(tmp_path, "a.txt", 5).read_text() == "12345"
    with pytest.raises(ValueError, match="has 5 bytes, more than 4"):
        confined(tmp_path, "a.txt", 4)


def test_the_few_files_of_a_workspace_are_read_and_of_more_or_of_others_none(tmp_path: Path) -> None:
    for n in range(4):
        (tmp_path / str(n)).write_bytes(b"x" * 16_384 if n else b"")
    assert sorted(few_files(tmp_path)) == [(str(n), b"x" * 16_384 if n else b"") for n in range(4)]
    (tmp_path / "3").write_bytes(b"x" * 16_385)
    with pytest.raises(ValueError, match="'3' is large"):
        few_files(tmp_path)
    (tmp_path / "3").unlink()
    others: list[object] = []
    for make in (Path.mkdir, lambda path: path.symlink_to("0"), os.mkfifo):
        make(tmp_path / "odd")
        with pytest.raises(ValueError, match="more than a few files"):
            few_files(tmp_path)
        (tmp_path / "odd").rename(tmp_path.with_name(f"{tmp_path.name}-{len(others)}"))
        others.append(make)
    for name in "ab":
        (tmp_path / name).touch()
    with pytest.raises(ValueError, match="more than a few files"):
        few_files(tmp_path)


def test_a_file_is_written_below_32_folders_at_most(tmp_path: Path) -> None:
    write_untrusted(tmp_path, "d/" * 32 + "a", b"x")
    assert (tmp_path / ("d/" * 32) / "a").read_bytes() == b"x"
    with pytest.raises(ValueError, match="lies more than 32 folders deep"):
        write_untrusted(tmp_path, "d/" * 33 + "a", b"x")
    assert not (tmp_path / ("d/" * 33)).exists()


def test_a_file_of_an_agent_is_read_up_to_its_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_untrusted(tmp_path, "a", 5) == b"12345"
    with pytest.raises(ValueError, match="'a' has 5 bytes, more than 4"):
        read_untrusted(tmp_path, "a", 4)
    (tmp_path / "d").mkdir()
    with pytest.raises(ValueError, match="'d' is not a regular file"):
        read_untrusted(tmp_path, "d", 5)
    (tmp_path / "link").symlink_to("a")
    with pytest.raises(ValueError, match="'link' cannot be read without following links: "):
        read_untrusted(tmp_path, "link", 5)


def test_links_in_a_circle_and_what_is_missing_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ValueError, match=r"'loop' cannot be read: (a loop|Too many levels)"):
        confined(tmp_path, "loop", 9)
    with pytest.raises(ValueError, match="'none' cannot be read: No such file or directory; looked beside"):
        confined(tmp_path, "none", 9)
    (tmp_path / "d").mkdir()
    with pytest.raises(ValueError, match="'d' is not a regular file"):
        confined(tmp_path, "d", 99_999)


def test_a_walk_yields_what_is_no_folder_and_leaves_out_folders_by_name(tmp_path: Path) -> None:
    for name in ("a/skip/x", "a/b/y", "skip/z", "top"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "a" / "b" / "skip").touch()
    assert sorted(walk(tmp_path, ("skip",))) == ["a/b/skip", "a/b/y", "link", "top"]
    assert len([*walk(tmp_path)]) == 6


def test_a_walk_has_an_end_in_depth_and_in_number(tmp_path: Path) -> None:
    (tmp_path / ("d/" * 100)).mkdir(parents=True)
    (tmp_path / ("d/" * 100) / "x").touch()
    assert [*walk(tmp_path)] == ["d/" * 100 + "x"]
    (tmp_path / ("d/" * 101)).mkdir()
    with pytest.raises(ValueError, match="folders more than 100 deep"):
        [*walk(tmp_path)]
    few = tmp_path / "few"
    few.mkdir()
    for n in range(3):
        (few / str(n)).touch()
    assert len([*walk_entries(few, lambda _name, _entry: False, 3)]) == 3
    with pytest.raises(ValueError, match="more than 2 files and folders"):
        [*walk_entries(few, lambda _name, _entry: False, 2)]


def test_a_pipe_in_the_place_of_a_journal_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / JOURNAL)
    assert not holds_journal(tmp_path)


@pytest.mark.parametrize("name", ["../out.txt", "a/../../out.txt", "/out.txt", "."])
def test_nothing_is_written_beside_the_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(ValueError, match=r"."):
        write_untrusted(tmp_path / "in", name, b"x")
    assert [path.name for path in tmp_path.rglob("*")] == ["in"]


def test_a_link_is_shown_also_where_a_folder_of_its_name_is_left_out(tmp_path: Path) -> None:
    for folder in ("real", "sub/left"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "real" / "x").touch()
    (tmp_path / "sub" / "left" / "y").touch()
    (tmp_path / "left").symlink_to("real")
    assert sorted(walk(tmp_path, {"left"})) == ["left", "real/x"]
