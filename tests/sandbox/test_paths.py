"""Names from hostile input stay in their folder."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.files import JOURNAL, JOURNAL_START
from pytest_tfgrpo.sandbox.paths import check_name, confined, holds_journal, read_untrusted, write_untrusted


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
