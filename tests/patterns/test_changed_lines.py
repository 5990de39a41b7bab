"""Changed lines: as exact as the limit needs."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.repositories import Repository

from pytest_tfgrpo.patterns import changed_lines
from pytest_tfgrpo.patterns.changed_lines import LineCounts, lines_of_pairs
from pytest_tfgrpo.patterns.git_objects import GitObjects
from pytest_tfgrpo.patterns.history import changes, range_of

TEXTS = st.lists(st.sampled_from([b"a", b"b", b"c", b"", b"d"]), max_size=12).map(b"\n".join)


@settings(deadline=None)
@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=3), st.integers(0, 12))
def test_a_count_is_exact_above_the_limit_and_at_most_that_below(
    pairs: list[tuple[bytes, bytes]], limit: int
) -> None:
    exact = sum(differing(a, b) for a, b in pairs)
    found = lines_of_pairs(pairs, limit)
    assert found == exact if found > limit else exact <= limit


def differing(a: bytes, b: bytes) -> int:
    before, after = Counter(a.splitlines()), Counter(b.splitlines())
    return (before - after).total() + (after - before).total()


def test_contents_that_several_changes_share_are_read_once_and_right(tmp_path: Path) -> None:
    repository = Repository(tmp_path / "project")
    for n in range(9):
        repository.commit({"a.py": f"{n}\n" * (n + 1), "b.py": "x\n"})
    with GitObjects(repository.folder) as objects:
        found = [c.files for c in changes(objects, range_of(objects, "main"))][:-1]
        counts = LineCounts(objects)
        for n in range(0, 8, 2):
            counts.ask([found[n], found[n + 1]])
        lines = [line for _ in range(4) for line in counts.take(0)]
    assert lines == [2 * n + 1 for n in range(8, 0, -1)]


def test_what_was_forgotten_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_lines, "KEPT", 250)
    repository = Repository(tmp_path / "project")
    for n in range(6):
        repository.commit({"a.py": f"{n}\n" * 100})
    with GitObjects(repository.folder) as objects:
        counts, lines = LineCounts(objects), list[int | str]()
        for change in changes(objects, range_of(objects, "main")):
            counts.ask([change.files])
            lines += counts.take(0)
    assert lines == [200] * 5 + [0]
