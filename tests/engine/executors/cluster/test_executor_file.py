"""``executor.toml``: what is read, and what is refused with file, key and value."""

from pathlib import Path

import pytest

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.engine.executors.cluster.executor_file import Resources, load_executor_file


def test_without_a_file_nothing_is_asked_for(tmp_path: Path) -> None:
    file = load_executor_file(tmp_path)
    assert file.of("command:./agent") == Resources()
    assert (file.exclude, file.package_max) == ((), 100 * 2**20)


def test_an_actor_has_its_own_row_or_that_of_all_others(tmp_path: Path) -> None:
    (tmp_path / "executor.toml").write_text(
        '[resources."command:./agent"]\ncpu = 1\nmemory = "2GiB"\n'
        '[resources."*"]\ngpu = 0.5\ncustom = {licence = 2}\n'
        '[package]\nexclude = ["data"]\nmax = "1 MB"\n'
    )
    file = load_executor_file(tmp_path)
    assert file.of("command:./agent").wanted == {"CPU": 1, "memory": 2 * 2**30}
    assert file.of("offline").wanted == {"GPU": 0.5, "licence": 2}
    assert str(file.of("command:./agent")) == "1 CPU, 2 GiB of memory"
    assert (file.exclude, file.package_max) == (("data",), 10**6)


@pytest.mark.parametrize(
    ("need", "total", "places"),
    [
        (Resources(), {"CPU": 2.0}, 64),
        (Resources(cpu=1), {"CPU": 2.0}, 2),
        (Resources(gpu=0.1), {"GPU": 1.0}, 10),
        (Resources(cpu=1, memory=2**30), {"CPU": 8.0, "memory": 3.5 * 2**30}, 3),
        (Resources(custom={"licence": 1}), {"CPU": 8.0}, 0),
    ],
)
def test_a_node_holds_as_many_rollouts_as_fit(need: Resources, total: dict[str, float], places: int) -> None:
    assert need.fit(total, 64) == places


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[resources", r"cannot read .*executor\.toml"),
        ("[resource]", "resource"),
        ('[resources."*"]', "resources"),
        ('[resources."*"]\ncpu = -1', "cpu"),
        ('[resources."*"]\ncpu = nan', "cpu"),
        ('[resources."*"]\nmemory = "much"', r"memory: 'much' is not an amount; write one such as '2GiB'"),
        ('[package]\nmax = "0"', r"package\.max: '0' is not an amount"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "executor.toml").write_text(text)
    with pytest.raises(SettingError, match=message):
        load_executor_file(tmp_path)
