"""pytest-xdist: scenario items go to one worker, and the report is the same as without."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.plugin.distributed import Controller, is_scenario_id


@pytest.mark.parametrize(
    ("node_id", "expected"),
    [
        ("fixtures/a.scenario.yaml::x[epoch1]", True),
        ("a.scenarios.jsonl::x", True),
        ("tfgrpo::gate", True),
        ("tfgrpo::added[baseline]", True),
        ("test_a.py::test_x[tfgrpo-epoch3-eval-r0]", True),
        ("test_a.py::test_x[a-b-tfgrpo-baseline-r11]", True),
        ("test_a.py::test_x[a-b-tfgrpo-gpt-x.1-epoch2-r0]", True),
        ("test_a.py::test_x[tfgrpo]", False),
        ("test_a.py::test_x", False),
        ("test_tfgrpo.py::test_epoch1", False),
    ],
)
def test_scenario_items_are_known_by_their_node_ids(node_id: str, expected: bool) -> None:
    assert is_scenario_id(node_id) is expected


def test_the_live_line_of_a_worker_that_is_gone_is_taken_away(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Any] = {}
    channel = SimpleNamespace(setcallback=lambda show, endmarker: given.update(show=show, end=endmarker))
    node = SimpleNamespace(workerinput={}, gateway=SimpleNamespace(newchannel=lambda: channel))
    done: list[str] = []
    screen = SimpleNamespace(clear=lambda: done.append("clear"), keep=done.append)
    monkeypatch.setattr(pytestconfig, "get_verbosity", lambda *_: 0)
    controller = Controller(pytestconfig, lambda _: None)
    monkeypatch.setattr(controller, "_screen", screen)
    controller.pytest_configure_node(node)
    given["show"](("keep", "tfgrpo epoch1: ..."))
    given["show"](given["end"])  # what execnet passes on when the worker is killed
    assert done == ["tfgrpo epoch1: ...", "clear"]
