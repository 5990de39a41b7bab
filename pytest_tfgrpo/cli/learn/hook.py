"""The command ``tfgrpo learn hook``: what captures work by itself, to copy."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.patterns.capture.hooks import HOOKS


def hook(arguments: Arguments) -> Iterator[str]:
    """Print a command, hook or CI job to copy, which captures work."""
    found = HOOKS[arguments.kind]
    print(f"{found.path}: {found.about}", file=sys.stderr)
    yield found.text.rstrip("\n")
