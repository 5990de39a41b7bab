"""Further components of a reward come by entry point; one that cannot be used is refused by name."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from pytest_tfgrpo.core.errors import RewarderError
from pytest_tfgrpo.production.rewards import components
from pytest_tfgrpo.production.rewards.components import GROUP, load_components


def installed(monkeypatch: pytest.MonkeyPatch, *points: tuple[str, str]) -> None:
    found = EntryPoints(EntryPoint(name=name, value=value, group=GROUP) for name, value in points)
    monkeypatch.setattr(components, "entry_points", lambda group: found.select(group=group))


def test_installed_components_are_loaded_by_name(monkeypatch):
    assert load_components() == {}
    installed(monkeypatch, ("brevity", "math:fabs"))
    assert load_components()["brevity"](-1) == 1  # type: ignore[arg-type]
    installed(monkeypatch, ("tone", "math:fabs"), ("brevity", "math:sin"))
    assert list(load_components()) == ["brevity", "tone"]


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([("Brevity", "math:fabs")], "needs a name of its own"),
        ([("efficiency", "math:fabs")], "needs a name of its own"),
        ([("brevity", "math:fabs"), ("brevity", "math:sin")], "two components have that name"),
        ([("brevity", "math:nothing")], "cannot be loaded: AttributeError"),
        ([("brevity", "no_such_module_here:x")], "cannot be loaded: ModuleNotFoundError"),
        ([("brevity", "math:pi")], "is no function"),
    ],
)
def test_a_component_that_cannot_be_used_is_refused_by_name(monkeypatch, points, message):
    installed(monkeypatch, *points)
    with pytest.raises(RewarderError, match=message) as caught:
        load_components()
    assert points[-1][0] in str(caught.value)
