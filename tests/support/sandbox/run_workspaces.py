"""What the tests of sandbox/test_run_workspaces.py share with the slow ones."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

RUN = "20260101T000000-00000000"


def _renamed(pointer: Path, folder: Path) -> None:
    other = folder.with_name("important")
    folder.rename(other)
    pointer.write_text(json.dumps({"folder": str(other)}))


def _linked(pointer: Path, folder: Path) -> None:
    other = folder.with_name("important")
    folder.rename(other)
    folder.symlink_to(other)


def _linked_above(pointer: Path, folder: Path) -> None:
    link = folder.parent.with_name("link")
    link.symlink_to(folder.parent)
    pointer.write_text(json.dumps({"folder": str(link / folder.name)}))


def _dotted(pointer: Path, folder: Path) -> None:
    pointer.write_text(json.dumps({"folder": f"{folder.parent}/../{folder.parent.name}/{folder.name}"}))


def _relative(pointer: Path, folder: Path) -> None:
    pointer.write_text(json.dumps({"folder": os.path.relpath(folder)}))


def _of_another_run(pointer: Path, folder: Path) -> None:
    other = folder.with_name(folder.name.replace(RUN, "20250101T000000-00000000"))
    folder.rename(other)
    pointer.write_text(json.dumps({"folder": str(other)}))


def _a_file(pointer: Path, folder: Path) -> None:
    shutil.rmtree(folder)
    folder.touch()


def _a_pipe(pointer: Path, folder: Path) -> None:
    pointer.unlink()
    os.mkfifo(pointer)


def _linked_pointer(pointer: Path, folder: Path) -> None:
    pointer.rename(pointer.with_name("elsewhere"))
    pointer.symlink_to("elsewhere")


CORRUPTIONS: dict[str, Callable[[Path, Path], object]] = {
    "is gone": lambda pointer, folder: shutil.rmtree(folder),
    "has another name": _renamed,
    "is a link": _linked,
    "is reached by a link": _linked_above,
    "is reached by dots": _dotted,
    "is relative": _relative,
    "belongs to another run": _of_another_run,
    "is a file": _a_file,
    "others can enter": lambda pointer, folder: folder.chmod(0o750),
    "others can replace": lambda pointer, folder: folder.parent.chmod(0o777),
    "is nowhere": lambda pointer, folder: pointer.write_text('{"folder": null}'),
    "has a null": lambda pointer, folder: pointer.write_text('{"folder": "/tmp/\\u0000"}'),
    "is too long": lambda pointer, folder: pointer.write_text(json.dumps({"folder": "/x" * 100_000})),
    "is no JSON": lambda pointer, folder: pointer.write_bytes(b"\xff{"),
    "is nested": lambda pointer, folder: pointer.write_text("[" * 9_000),
    "is a pipe": _a_pipe,
    "is told by a link": _linked_pointer,
}
