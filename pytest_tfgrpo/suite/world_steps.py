"""Steps that set up and tear down the world of a scenario's rollouts, as its file has them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.python.import_path import importable
from pytest_tfgrpo.core.python.named_callable import require_callable
from pytest_tfgrpo.core.scenarios import Attachment, WorldStep
from pytest_tfgrpo.core.wire.code_stamp import code_sha256
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.paths import check_name, confined
from pytest_tfgrpo.scoring.checks.command import words_of
from pytest_tfgrpo.scoring.checks.protocol import BadParam

FILE_MAX_BYTES = 10_000_000


def read_step(data: Mapping[str, Json], folder: Path) -> WorldStep:
    """Return the step that `data` describes, valid under the schema; raises BadParam.

    The words of a command that name files in `folder`, its program where it has a slash, are these files.
    """
    timeout_s = float(data.get("timeout_s", WorldStep().timeout_s))
    if "python" in data:
        require_target(data["python"], folder)
        return WorldStep(target=data["python"], timeout_s=timeout_s, sha256=code_sha256(data["python"]))
    words = words_of("command", data["command"])
    try:
        files = tuple(_files(words, folder))
    except (ValueError, OSError) as error:
        raise BadParam("command", str(error)) from None
    return WorldStep(command=tuple(words), timeout_s=timeout_s, files=files)


def require_target(target: str, folder: Path) -> None:
    """Raise BadParam unless `target` names a plain callable, of a module on the import path or in `folder`.

    A module stays imported, so `folder` may not have another one of its name.
    """
    try:
        with importable(folder, first=False):
            require_callable(target)
    except ValueError as error:
        raise BadParam("python", str(error)) from error
    module = target.partition(":")[0]
    found = getattr(sys.modules[module], "__file__", None)
    path = folder.joinpath(*module.split("."))
    own = [file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()]
    if own and not any(_same(file, found) for file in own):
        where = f"in {found}" if found else "elsewhere"
        raise BadParam("python", f"{target!r} was found {where}, not beside the scenario; rename one")


def _same(own: Path, found: str | None) -> bool:
    """Return whether `found` is the file `own`; what is in no file, or in one of an archive, is another."""
    try:
        return found is not None and own.samefile(found)
    except OSError:
        return False


def _files(words: Sequence[str], folder: Path) -> Iterator[Attachment]:
    for name in dict.fromkeys((*(words[:1] if "/" in words[0] else ()), *words[1:])):
        plain = os.path.normpath(name)
        try:
            check_name(plain)
        except ValueError:  # a path to somewhere else, an option, or no path
            continue
        if os.path.isfile(folder / plain):  # noqa: PTH113 - Path.is_file raises on a word too long for a name
            path = confined(folder, plain, FILE_MAX_BYTES)
            yield Attachment(name=name, path=path, sha256=stamp_bytes(path.read_bytes()))
