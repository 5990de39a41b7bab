"""How the scripts of the reporter are loaded."""

from __future__ import annotations

import os
import socket
import sys
from importlib import import_module
from pathlib import Path

import pytest

from pytest_tfgrpo.scoring.runners.python import pytest_runner, pytest_start

PACKAGE = pytest_start.__name__.rpartition(".")[0]


def test_scripts_are_loaded_as_they_came_and_from_their_files_where_they_did_not(tmp_path: Path) -> None:
    for name, text in pytest_runner._scripts().items():
        path = Path(pytest_start.__file__).with_name(f"{name}.py")
        module = pytest_start._script(name, str(path), str(text))
        assert (module.__file__, module.__doc__) == (str(path), import_module(f"{PACKAGE}.{name}").__doc__)
    own = tmp_path / "own.py"
    own.write_text("VALUE = __file__\n")
    assert str(own) == pytest_start._script("own", str(own), "").VALUE
    assert {"own", *pytest_runner._scripts()}.isdisjoint(sys.modules)


@pytest.mark.parametrize("python", [pytest_start.python(), "cpython-38 550d0d0a"])
def test_what_another_python_compiled_is_compiled_again(
    python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    class Script:
        @staticmethod
        def report(number: int, request: object, here: str, *others: object) -> None:
            os.close(number)
            assert (request, here, len(others)) == ({"more": 1}, str(tmp_path), 3)

    def load(name: str, path: str, text: str) -> type[Script]:
        calls.append(text)
        return Script

    monkeypatch.setattr(pytest_start, "__file__", str(tmp_path / "pytest_start.py"))
    monkeypatch.setattr(pytest_start, "_script", load)
    monkeypatch.setattr(pytest_start.gc, "disable", lambda: None)
    monkeypatch.setattr(pytest_start.sys, "dont_write_bytecode", sys.dont_write_bytecode)
    names = ("reporter", "guard", "kept", "returns")
    body = pytest_runner.json.dumps(
        {"python": python, "scripts": {f"pytest_{name}": "compiled" for name in names}, "more": 1}
    ).encode()
    ours, theirs = socket.socketpair()
    before = os.dup(0)
    try:
        with ours, theirs:
            os.dup2(theirs.fileno(), 0)
            ours.sendall(pytest_start.HEADER.pack(len(body)) + body)
            pytest_start.main()
    finally:
        os.dup2(before, 0)
        os.close(before)
    assert calls == ["compiled" if python == pytest_start.python() else ""] * 4
