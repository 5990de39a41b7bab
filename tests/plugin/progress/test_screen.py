"""What a log without a terminal gets of a run, and when."""

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.plugin.progress import screen
from pytest_tfgrpo.plugin.progress.live_line import Part
from pytest_tfgrpo.plugin.progress.screen import DrawnScreen, LogScreen, open_screen


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


class Writer(io.StringIO):
    """Pytest's writer, as much as is asked of it."""

    fullwidth = 80
    width_of_current_line = 0

    def line(self, text: str = "") -> None:
        self.write(f"{text}\n")

    def markup(self, text: str, **colours: bool) -> str:
        return f"<{' '.join(colours)}>{text}</>"


class Pytest(SimpleNamespace):
    """As much of pytest's configuration as screens look at."""

    def __init__(
        self, *, verbosity: int = 0, isatty: bool | None = True, capture: str = "fd", **more: Any
    ) -> None:
        reporter = None if isatty is None else SimpleNamespace(isatty=isatty, currentfspath=None)
        plugins = {"terminalreporter": reporter, "capturemanager": None}
        super().__init__(
            reporter=reporter,
            writer=Writer(),
            invocation_params=SimpleNamespace(dir=Path("/suite")),
            registered=[],
            pluginmanager=SimpleNamespace(
                get_plugin=plugins.get,
                hasplugin=lambda name: name == "logging-plugin" and "log_cli" in more,
                register=lambda plugin, name: self.registered.append((plugin, name)),
            ),
            get_verbosity=lambda: verbosity,
            getini=lambda name: more[name],
            getoption=lambda name, default=None: capture if name == "capture" else more.get("log_cli_level"),
            get_terminal_writer=lambda: self.writer,
        )


@pytest.mark.parametrize(
    ("given", "term", "expected"),
    [
        ({}, "xterm", DrawnScreen),
        ({"verbosity": 1}, "xterm", DrawnScreen),
        ({"log_cli": False}, "xterm", DrawnScreen),
        ({"isatty": None}, "xterm", None),
        ({"verbosity": -1}, "xterm", None),
        ({"isatty": False}, "xterm", LogScreen),
        ({}, "dumb", LogScreen),
        ({"capture": "no"}, "xterm", LogScreen),
        ({"log_cli": True}, "xterm", LogScreen),
        ({"log_cli": False, "log_cli_level": "INFO"}, "xterm", LogScreen),
        ({"log_cli": False, "log_cli_level": 0}, "xterm", LogScreen),
    ],
)
def test_a_line_is_drawn_only_where_nothing_else_writes(
    given: dict[str, Any], term: str, expected: type | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    config: Any = Pytest(**given)
    found = open_screen(config)
    assert (found if found is None else type(found)) is expected
    assert config.registered == ([(found, "tfgrpo-screen")] if expected is DrawnScreen else [])


@pytest.mark.parametrize(
    ("here", "resume", "column", "written", "then"),
    [
        (Path("/suite/a/test_a.py"), True, 0, "one\ntwo\na/test_a.py ", Path("/suite/a/test_a.py")),
        (Path("/suite/a/test_a.py"), True, 7, "\none\ntwo\na/test_a.py ", Path("/suite/a/test_a.py")),
        ("test_a.py::x ", True, 0, "one\ntwo\ntest_a.py::x ", "test_a.py::x "),
        (None, True, 0, "one\ntwo\n", None),
        (Path("/suite/a/test_a.py"), False, 0, "one\ntwo\n", None),
        ("test_a.py::x ", False, 0, "one\ntwo\n", None),
    ],
)
def test_lines_that_stay_leave_the_list_of_tests_as_it_was(
    here: object, resume: bool, column: int, written: str, then: object
) -> None:
    config: Any = Pytest(isatty=False)
    config.reporter.currentfspath, config.writer.width_of_current_line = here, column
    screen._Terminal(config, config.reporter).write(["one", "two"], resume=resume)
    assert config.writer.getvalue() == written
    assert config.reporter.currentfspath == then


def test_parts_have_their_colour_and_empty_ones_are_nothing() -> None:
    config: Any = Pytest()
    parts = [Part("a", colour="red"), Part("b", "x"), Part("", colour="bold")]
    assert screen._Terminal(config, config.reporter).coloured(parts) == "<red>a</>b"


def test_what_stays_is_drawn_above_the_line_and_written_whole_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    config: Any = Pytest()
    config.writer.width_of_current_line = 3
    drawn = DrawnScreen(config, config.reporter)
    drawn.restore()
    drawn.clear()
    assert capsys.readouterr().out == ""
    for text in ("1", "2", "2", "3", "4", "é" * 90):
        drawn.keep(text)
    drawn.show(SimpleNamespace(parts=[Part("at", colour="bold")]))  # type: ignore[arg-type]
    rows = ["2", "3", "4", "?" * 79, "<bold>at</>"]
    below = "".join(f"\n\r{row}\x1b[K" for row in rows)
    assert capsys.readouterr().out == f"{below}\x1b[J\x1b[5A\r\x1b[3C"
    drawn.restore()
    assert capsys.readouterr().out == ""
    drawn.clear()
    assert capsys.readouterr().out == "\x1b[J"
    config.writer.width_of_current_line = 0
    drawn.restore()
    assert capsys.readouterr().out == f"{below}\x1b[J\x1b[5A\r"
    for _ in range(2):
        drawn.finish()
    assert capsys.readouterr().out == "\x1b[J"
    assert config.writer.getvalue() == f"1\n2\n3\n4\n{'é' * 80}\n  {'é' * 10}\n"
    drawn.restore()
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("where", "column", "drawn"),
    [(None, 5, ""), (None, 9, ""), (None, 4, "\x1b[J"), ("test_b.py", 9, "\x1b[J")],
)
def test_rows_are_wiped_once_pytest_has_begun_a_new_line(
    where: str | None, column: int, drawn: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config: Any = Pytest()
    config.writer.width_of_current_line = 5
    live = DrawnScreen(config, config.reporter)
    live.show(SimpleNamespace(parts=[Part("at")]))  # type: ignore[arg-type]
    capsys.readouterr()
    for hook in (live.pytest_runtest_logstart, live.pytest_runtest_logreport):
        around = hook()
        next(around)
        config.reporter.currentfspath, config.writer.width_of_current_line = where, column
        with pytest.raises(StopIteration) as end:
            around.send("result")
        assert end.value.value == "result"
        assert capsys.readouterr().out == drawn
        drawn = ""  # nothing is left to wipe, or nothing new has begun


@pytest.mark.parametrize("hook", ["pytest_enter_pdb", "pytest_exception_interact"])
def test_a_debugger_has_the_terminal_to_itself(hook: str, capsys: pytest.CaptureFixture[str]) -> None:
    config: Any = Pytest()
    live = DrawnScreen(config, config.reporter)
    live.show(SimpleNamespace(parts=[Part("at")]))  # type: ignore[arg-type]
    capsys.readouterr()
    getattr(live, hook)()
    assert capsys.readouterr().out == "\x1b[J"
