"""Files of marks, which may come from anybody, and how marks stand beside the checks."""

from pathlib import Path

import pytest
from support.review.marks import mark, written

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.review.marks import load_marks


def test_too_many_marks_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a.json", *(mark(f"run1.e2.s.r{n}") for n in range(20_001)))
    with pytest.raises(JournalError, match="/marks: "):
        load_marks([path])
