"""What a log without a terminal gets of a run, and when."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.plugin.progress import screen
from pytest_tfgrpo.plugin.progress.screen import LogScreen


class Log:
    """Takes what would be written."""

    def __init__(self, config: object, reporter: object) -> None:
        self.written: list[str] = []
        self.writer = SimpleNamespace(fullwidth=80)

    def coloured(self, parts: str) -> str:
        return parts

    def write(self, lines: list[str], *, resume: bool) -> None:
        self.written += lines


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(screen, "_Terminal", Log)
    config: Any = None
    return LogScreen(config, None)


def show(log: LogScreen, at_s: float, share: float) -> None:
    moment: Any = SimpleNamespace(at_s=at_s, share=share, parts=f"at {at_s:g}")
    log.show(moment)


def test_a_log_gets_a_line_after_10_s_then_at_each_tenth_and_each_minute(log: Any) -> None:
    shares = {5: 0.3, 10: 0.3, 15: 0.4, 21: 0.4, 40: 0.49, 60: 0.5, 100: 0.55, 120: 0.59, 130: 0.59}
    for at_s, share in shares.items():
        show(log, at_s, share)
    assert log._terminal.written == ["at 10", "at 21", "at 60", "at 120"]


def test_what_stays_is_written_once_with_the_next_line_or_at_the_end(log: Any) -> None:
    for text in ("paused", "paused", "goes on"):
        log.keep(text)
    show(log, 5, 0.0)
    assert log._terminal.written == []
    show(log, 10, 0.0)
    log.keep("paused")
    log.keep("done")
    log.finish()
    log.finish()
    assert log._terminal.written == ["paused", "goes on", "at 10", "done"]
