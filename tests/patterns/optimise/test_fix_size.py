"""The size of a fix: changed lines of source, whatever comes from the fix's own tests left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.harvests import make_provenance, make_recipe

from pytest_tfgrpo.core.records import FileChange
from pytest_tfgrpo.harvest.suite.suite_files import FixArchives, write_proof, write_scenario
from pytest_tfgrpo.patterns.optimise.fix_size import ProvenFix, content_of, read_fix
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, pack

FIX = ProvenFix(
    base={"a.py": b"one\ntwo\n", "gone.py": b"x\ny\nz\n", "link": b"a.py"},
    fixed={"a.py": b"one\nthree\n", "gone.py": None, "new.py": b"n\n"},
    protected=frozenset({"data.txt"}),
    globs=("golden/**",),
)


def test_lines_that_are_added_and_removed_count_also_of_files_that_come_and_go() -> None:
    assert FIX.lines == 2 + 3 + 1


def test_of_an_agents_files_its_source_counts_alone() -> None:
    files = [
        FileChange(name="a.py", text="one\ntwo\nthree\n"),
        FileChange(name="data.txt", text="1\n2\n"),
        FileChange(name="golden/x.txt", text="1\n2\n"),
        FileChange(name="tests/test_a.py", text="1\n2\n"),
        FileChange(name="gone.py"),
        FileChange(name="new.bin", hex="0a0a"),
        FileChange(name="link", link="b.py"),
    ]
    assert [file.name for file in FIX.source_of(files)] == ["a.py", "gone.py", "new.bin", "link"]
    assert FIX.lines_of(files) == 1 + 3 + 2 + 2
    assert FIX.lines_of([FileChange(name="link", link="a.py")]) == 0


@pytest.mark.parametrize(
    ("change", "content"),
    [
        (FileChange(name="a", text=""), b""),
        (FileChange(name="a", text="\u00fc"), b"\xc3\xbc"),
        (FileChange(name="a", hex="ff00"), b"\xff\0"),
        (FileChange(name="a", link="b"), b"b"),
        (FileChange(name="a"), None),
    ],
)
def test_what_a_changed_file_holds(change: FileChange, content: bytes | None) -> None:
    assert content_of(change) == content


def test_the_fix_of_a_job_is_read_from_its_files(tmp_path: Path) -> None:
    provenance = make_provenance(
        removed=("gone.py",), protected=("tests/test_a.py",), recipe=make_recipe(protected=("golden/**",))
    )
    base = [ArchiveEntry(name="a.py", data=b"1"), ArchiveEntry(name="link", link="a.py")]
    archives = FixArchives(
        base=pack([*base, ArchiveEntry(name="gone.py", data=b"x")]),
        hidden=pack([ArchiveEntry(name="tests/test_a.py", data=b"t")]),
        reference=pack([ArchiveEntry(name="a.py", data=b"2")]),
    )
    write_proof(tmp_path, provenance, None)
    write_scenario(tmp_path, provenance, archives, "shop")
    found = read_fix(tmp_path, provenance.id)
    assert found.base == {"a.py": b"1", "link": b"a.py", "gone.py": b"x"}
    assert found.fixed == {"a.py": b"2", "gone.py": None}
    assert (found.protected, found.globs) == (frozenset({"tests/test_a.py"}), ("golden/**",))
    assert found.lines == 3
