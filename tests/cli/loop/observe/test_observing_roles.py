"""The role that calls the command of alerts, as ``loop.toml`` names it."""

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.cli.loop.observe import observing_roles
from pytest_tfgrpo.production.bus.registry import open_bus
from pytest_tfgrpo.production.config import load_loop_config
from pytest_tfgrpo.production.loop_file import write_key
from pytest_tfgrpo.production.view.view import LoopView


def test_the_command_is_called_beside_loop_toml_without_the_variables_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[Path, Mapping[str, str]]] = []
    called: list[tuple[Any, bytes]] = []

    def process(folder: Path, environ: Mapping[str, str]) -> Any:
        started.append((folder, environ))
        return lambda command, data: called.append((command, data)) or ""

    monkeypatch.setattr(observing_roles, "CommandProcess", process)
    environ = {"HOME": "/h", "TFGRPO_LOOP_SERVICE_PORT": "1"}
    with (
        closing(open_bus(f"embedded:{tmp_path / 'bus.db'}")) as bus,
        closing(LoopView(tmp_path / "view.db")) as view,
    ):
        roles = []
        for text in ("", '[alerts]\ncommand = ["page", "me"]\n'):
            (tmp_path / "loop.toml").write_text(text)
            config = load_loop_config(tmp_path / "loop.toml", {})
            write_key(config.key_path)
            roles.append(observing_roles.alert_roles(bus, view, config, environ, "me"))
    none, [role] = roles
    assert none == []
    assert role._call(b"{}") == ""  # type: ignore[attr-defined]
    assert called == [(("page", "me"), b"{}")]
    assert started == [(tmp_path, {"HOME": "/h"})]
