"""Which code is an installed file's own."""

from __future__ import annotations

import types
from pathlib import Path
from types import SimpleNamespace

import pytest
from _pytest.assertion import rewrite

from pytest_tfgrpo.scoring.runners.python.pytest_guard import Installed
from pytest_tfgrpo.scoring.runners.python.pytest_reporter import EVENT, UNHEARD, WATCHED

TRACES = "import sys\n\ndef start(own):\n    assert own\n    sys.settrace(own)\n"
CONFIG = SimpleNamespace(
    pluginmanager=SimpleNamespace(rewrite_hook=SimpleNamespace(_must_rewrite={"plug", "plug.inner", "own"}))
)


def rewritten(path: str) -> types.CodeType:
    return rewrite._rewrite_test(Path(path), None)[1]  # type: ignore[arg-type]


def function_in(path: Path, text: str | None = None) -> types.CodeType:
    """Return the code of a file's function as pytest rewrites it, or of a text in the file's name."""
    module = rewritten(str(path)) if text is None else compile(text, str(path), "exec", dont_inherit=True)
    (found,) = [one for one in module.co_consts if isinstance(one, types.CodeType)]
    return found


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("site/plug/inner/trace.py", "site/plug/other.py", "site/own.py", "tree/own.py"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TRACES if "other" not in name else TRACES.replace("sys.settrace(own)", "own()"))
    for folder in ("site", "tree"):
        monkeypatch.syspath_prepend(tmp_path / folder)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("site/plug/inner/trace.py", True),
        ("site/own.py", True),
        ("site/plug/other.py", False),
        ("tree/own.py", False),
    ],
)
def test_a_plugin_that_pytest_rewrites_may_trace_as_its_file_says(
    name: str, known: bool, places: Path
) -> None:
    """Where a test fails, Hypothesis traces it from a function with an assertion."""
    installed = Installed(str(places / "tree"), "")
    code = function_in(places / name)
    installed.keep_rewritten(CONFIG, rewritten)
    assert installed.is_genuine(code) is known
    assert not installed.is_genuine(function_in(places / name, TRACES.replace("assert own", "own()")))
    assert installed.is_genuine(function_in(places / name, (places / name).read_text())) is ("site" in name)


def test_without_a_hook_that_rewrites_nothing_is_kept(places: Path) -> None:
    installed = Installed(str(places / "tree"), "")
    installed.keep_rewritten(SimpleNamespace(pluginmanager=object()), rewritten)
    assert not installed.is_genuine(function_in(places / "site/own.py"))


def test_no_event_that_shows_anything_is_left_unheard():
    heard = {EVENT, *WATCHED, "open", "object.__setattr__", "sys._current_frames"}
    assert UNHEARD.isdisjoint(heard)
    assert not any(event.startswith("ctypes.") for event in UNHEARD)
