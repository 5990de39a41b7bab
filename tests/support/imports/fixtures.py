"""Files of other tools, and what an import makes of them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_tfgrpo.suite.imports.formats import read_files
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.tables import TableColumns


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., Imported]:
    """Write a file and import it."""

    def read(form: str, name: str, text: str, expect: str | None = None, **columns: str) -> Imported:
        path = tmp_path / name
        path.write_text(text)
        return read_files(form, [path], columns=TableColumns(**columns), expect=expect)

    return read
