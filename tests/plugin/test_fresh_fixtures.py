"""What an item has of function scope is torn down and set up again as pytest itself would."""

from types import SimpleNamespace
from typing import Any

from pytest_tfgrpo.plugin.fresh_fixtures import FreshFixtures

LOG: list[str] = []


def fixture(name: str, scope: str = "function") -> Any:
    def finish(request: object) -> None:
        LOG.append(f"{name} down")

    def execute(request: object) -> str:
        LOG.append(f"{name} up")
        return f"new {name}"

    return SimpleNamespace(argname=name, scope=scope, finish=finish, execute=execute)


def test_the_last_goes_first_and_comes_back_last() -> None:
    LOG.clear()
    hook = SimpleNamespace(pytest_runtest_makereport=lambda item, call: LOG.append(f"{call.when} reported"))
    item: Any = SimpleNamespace(ihook=hook, funcargs={"a": "old", "c": "old", "rollout": "old"})
    fresh = FreshFixtures()
    fresh.pytest_runtest_setup(item)
    for made in (fixture("s", "session"), fixture("a"), fixture("rollout"), fixture("b"), fixture("c")):
        fresh.pytest_fixture_setup(made, SimpleNamespace())  # type: ignore[arg-type]
    fresh.renew(item)
    assert LOG == ["setup reported", "c down", "b down", "a down", "a up", "b up", "c up"]
    assert item.funcargs == {"a": "new a", "c": "new c", "rollout": "old"}
