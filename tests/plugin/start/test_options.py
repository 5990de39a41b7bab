"""Flags and ini keys as pytest is told of them."""

from types import SimpleNamespace
from typing import Any

from pytest_tfgrpo.core.settings import TABLE
from pytest_tfgrpo.plugin.start.options import declare


def test_the_help_of_a_setting_has_its_default_be_it_0_or_false() -> None:
    helps: dict[str, str] = {}
    group = SimpleNamespace(addoption=lambda flag, **given: helps.update({flag: given["help"]}))
    parser: Any = SimpleNamespace(getgroup=lambda _: group, addini=lambda *_, **__: None)
    declare(parser)
    assert helps["--tfgrpo-seed"].endswith("(default: 0)")
    assert helps["--tfgrpo-otel"].endswith("(default: False)")
    for setting in TABLE:
        assert ("(default: " in helps[setting.flag]) == (setting.default is not None)
