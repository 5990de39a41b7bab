"""Root of the project's own suite: tests write small projects and run pytest in them."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

INI_KEYS = {"asyncio": ("asyncio_mode", "asyncio_default_fixture_loop_scope"), "timeout": ("timeout",)}
"""Keys in pyproject.toml that belong to plugins of the tests."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """Know the keys of the tests' plugins without them too: the fixtures run on the plain package."""
    for plugin, keys in INI_KEYS.items():
        if not pluginmanager.hasplugin(plugin):
            for key in keys:
                parser.addini(key, help=f"of pytest-{plugin}, which is not here", default=None)
