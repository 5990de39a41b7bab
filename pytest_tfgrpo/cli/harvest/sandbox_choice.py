"""Whether the tests of a repository run in bubblewrap."""

from __future__ import annotations

from pytest_tfgrpo.core.errors import ActorError, SettingError
from pytest_tfgrpo.sandbox.programs.bubblewrap import open_bwrap
from pytest_tfgrpo.scoring.runners.protocol import Isolation


def require_sandbox(isolation: Isolation) -> None:
    """Raise SettingError unless the tests can be isolated as set."""
    if isolation != "bwrap":
        return
    try:
        open_bwrap()
    except ActorError as error:
        text = (
            str(error).replace("sandbox=none", "--check-sandbox none").replace("sandbox=bwrap", "the sandbox")
        )
        raise SettingError(text) from error
