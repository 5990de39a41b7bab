"""The environments that scenarios name."""

from pathlib import Path
from typing import Any

import pytest
from support.builders import make_scenario

from pytest_tfgrpo.core.errors import ScenarioError, SettingError
from pytest_tfgrpo.engine import environments


def of(id_: str, environment: str | None, source: str = "suites/a.yaml:3") -> Any:
    return make_scenario(id_, environment=environment, source=source)


def test_each_environment_is_looked_for_once_beside_the_file_of_its_first_scenario(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environments, "find_built", lambda folder, stamp: (folder, stamp))
    known = [of("a", "1"), of("b", None), of("c", "1", "other/b.yaml:9"), of("d", "2", "other/b.yaml:9")]
    assert environments.find_environments(Path("root"), known) == {
        "1": (Path("root/suites"), "1"),
        "2": (Path("root/other"), "2"),
    }


@pytest.mark.parametrize("kind", [SettingError, ScenarioError])
def test_a_scenario_whose_environment_lacks_is_named_with_its_place(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(folder: Path, wanted: str) -> Any:
        raise kind(f"{wanted} is not built")

    monkeypatch.setattr(environments, "find_built", find)
    with pytest.raises(SettingError, match=r"^scenario 'a' \(suites/a\.yaml:3\): 1 is not built$"):
        environments.find_environments(Path("root"), [of("b", None), of("a", "1"), of("c", "2")])
