"""Files put below a folder: what was there gives way, also between two entries of one writer."""

from pathlib import Path

from pytest_tfgrpo.sandbox.tree_writer import TreeWriter


def test_a_folder_that_was_deleted_is_made_again_for_the_next_file(tmp_path: Path) -> None:
    with TreeWriter(tmp_path) as writer:
        writer.file("a/b", b"1", executable=False)
        writer.delete("a")
        writer.delete("a/b")
        writer.file("a/c", b"2", executable=True)
        writer.link("a/c", "d")
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == ["a", "a/c"]
    assert (tmp_path / "a" / "c").readlink() == Path("d")
