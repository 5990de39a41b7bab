"""Stamps of code that a scenario names: another version of it judges, mocks or prepares in another way."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

from pytest_tfgrpo.core.python.named_callable import home_of, plain_callable
from pytest_tfgrpo.core.wire.stamp import combined_stamp, stamp_bytes

_INSTALLED = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}


def code_sha256(target: str) -> str:
    """Return the stamp of the files with an imported callable: where it is named and where it is defined.

    Empty for what is installed, so not of the project, or in no file.
    """
    modules = (sys.modules[target.partition(":")[0]], home_of(plain_callable(target)))
    files = {Path(file) for module in modules if (file := getattr(module, "__file__", None))}
    stamps = set()
    for file in files:
        if not any(file.is_relative_to(place) for place in _INSTALLED):
            try:
                stamps.add(stamp_bytes(file.read_bytes()))
            except OSError:  # of an archive, or made by a program
                continue
    return combined_stamp(stamps) if len(stamps) > 1 else "".join(stamps)
