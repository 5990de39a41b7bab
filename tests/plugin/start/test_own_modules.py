"""Modules of the package are imported as they are, without pytest's rewriting."""

import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import find_spec

import pytest

from pytest_tfgrpo.plugin.start.own_modules import OwnModules, load_as_they_are


class Rewriting:
    """A finder that claims every module, as pytest's does those of a distribution with a plugin."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec:
        return ModuleSpec(name, None, origin="rewritten")


def test_only_the_packages_own_modules_pass_the_rewriting_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "meta_path", [Rewriting()])
    monkeypatch.delitem(sys.modules, "pytest_tfgrpo.api", raising=False)
    load_as_they_are()
    load_as_they_are()
    ours, other = find_spec("pytest_tfgrpo.api"), find_spec("pytest_tfgrpo_extra")
    assert ours is not None
    assert isinstance(ours.loader, SourceFileLoader)
    assert other is not None
    assert other.origin == "rewritten"
    assert [type(finder) for finder in sys.meta_path] == [OwnModules, Rewriting]
    assert find_spec("pytest_tfgrpo.no_such_module") is not None, "the next finder is asked"
