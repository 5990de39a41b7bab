"""The folder that a demonstration works in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_tfgrpo.core.errors import SettingError


@contextmanager
def demo_folder(into: str | None) -> Iterator[Path]:
    """Yield the empty folder `into`, which is made, or one for the time of a demonstration."""
    with TemporaryDirectory(prefix="tfgrpo-demo-") as temporary:
        folder = Path(into or temporary).absolute()  # some of its programs run elsewhere
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise SettingError(f"{folder} is not empty; name a new folder")
        yield folder
