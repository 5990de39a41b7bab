"""How far runs are, while they go on: on a line of a terminal, and below the cell of a notebook."""

import asyncio
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.api import SMALL, SUITE

import pytest_tfgrpo as tfgrpo
from pytest_tfgrpo.api.progress import Lines, LineScreen, NotebookPlace, TerminalPlace, follow
from pytest_tfgrpo.engine.observers import Notice
from pytest_tfgrpo.plugin.progress.live_line import Moment, Part


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Display:
    """What a notebook shows of IPython's `display`: the outputs, as they were last updated."""

    def __init__(self) -> None:
        self.outputs: list[dict[str, str]] = []
        self.shown: list[str] = []

    def __call__(self, data: dict[str, str], *, raw: bool, display_id: bool) -> Any:
        assert (raw, display_id) == (True, True)
        self.outputs.append(data)
        self.shown.append(data["text/plain"])

        def update(data: dict[str, str], *, raw: bool) -> None:
            assert raw
            self.outputs[-1] = data
            self.shown.append(data["text/plain"])

        return SimpleNamespace(update=update)


def three(context: tfgrpo.AgentContext) -> str:
    return "3"


def moment(text: str) -> Moment:
    return Moment(1.0, 0.5, [Part(text, text[:4], "1")])


def attach(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Make standard error a terminal; in the test itself, as pytest captures a fixture's apart."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    return stream


@pytest.fixture
def display(monkeypatch: pytest.MonkeyPatch) -> Display:
    found = Display()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=found))
    return found


@pytest.mark.parametrize("apart", [False, True])
def test_a_terminal_has_one_line_which_is_gone_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: bool
) -> None:
    terminal = attach(monkeypatch)
    arguments: Any = {"actor": three, **SMALL}
    if apart:
        asyncio.run(tfgrpo.arun(tmp_path, SUITE, **arguments))
    else:
        tfgrpo.run(tmp_path, SUITE, **arguments)
    shown = terminal.getvalue()
    assert "tfgrpo 1/" in shown or "tfgrpo 0/" in shown
    assert "tfgrpo epoch3-eval: 10 rollouts scored, gt mean 1.000" in shown
    assert shown.endswith("\r\x1b[K")
    assert all(text.startswith(("tfgrpo", "\x1b[K")) for text in shown.split("\r")[1:])


def test_a_notebook_has_one_output_which_is_updated(tmp_path: Path, display: Display) -> None:
    tfgrpo.run(tmp_path, SUITE, actor={"a": three, "b": three}, **SMALL)
    assert len(display.outputs) == 1
    assert display.outputs[0] == {"text/plain": "", "text/html": ""}
    assert any("tfgrpo a " in text and "tfgrpo b " in text for text in display.shown)


def test_nothing_is_shown_where_nobody_looks(
    tmp_path: Path, display: Display, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    tfgrpo.run(tmp_path, SUITE, actor=three, learning=False, progress=False)
    monkeypatch.delitem(sys.modules, "IPython")
    monkeypatch.setenv("TERM", "dumb")
    assert follow() is None
    monkeypatch.setenv("TERM", "xterm")
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert follow() is None
    monkeypatch.setattr(sys, "stderr", None)
    assert follow() is None
    assert display.shown == []


def test_ipython_in_a_terminal_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = attach(monkeypatch)
    shell = SimpleNamespace(kernel=None)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    opened = follow()
    assert opened is not None
    gauge, job = SimpleNamespace(read=None), SimpleNamespace()
    threads: Any = {"": SimpleNamespace(gauge=gauge)}
    launches: Any = {"": SimpleNamespace(prepared=SimpleNamespace(job=job))}
    follower = opened(threads, launches)
    follower.take("", Notice(text="it pauses"))
    follower.close()
    follower.take("", Notice(text="too late"))
    assert terminal.getvalue() == "\rtfgrpo it pauses\x1b[K\n"


def test_runs_share_a_line_and_what_stays_is_above(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    stream = Terminal()
    lines = Lines(TerminalPlace(stream), 2)
    one, other = LineScreen(lines, "a"), LineScreen(lines, "b")
    one.show(moment("first is long"))
    one.show(moment("first is long"))
    other.show(moment("other"))
    one.keep("kept\x1b[31m")
    lines.close()
    both = "\rfirs | other"
    assert stream.getvalue().split("\x1b[K") == ["\rfirs", both, "\rkept", f"\n{both}", "\r", ""]
    assert len(both.strip()) < 24


def test_hostile_text_is_escaped_in_a_notebook(display: Display) -> None:
    place = NotebookPlace(display)
    place.keep("<b>kept</b>")
    place.show("<script>alert(1)</script>")
    assert display.outputs == [
        {
            "text/plain": "<b>kept</b>\n<script>alert(1)</script>",
            "text/html": "<pre>&lt;b&gt;kept&lt;/b&gt;\n&lt;script&gt;alert(1)&lt;/script&gt;</pre>",
        }
    ]


def test_a_display_that_breaks_does_not_end_a_run(tmp_path: Path, display: Display) -> None:
    calls: list[object] = []

    def broken(*args: object, **kwargs: object) -> None:
        calls.append(args)
        raise OSError("the kernel is gone")

    sys.modules["IPython.display"].display = broken
    assert tfgrpo.run(tmp_path, SUITE, actor=three, learning=False).passed
    assert len(calls) == 1
