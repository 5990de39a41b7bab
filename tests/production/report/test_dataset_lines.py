"""What is said of a dataset, and of the streams."""

from types import SimpleNamespace
from typing import Any

from pytest_tfgrpo.production.report.dataset_lines import REASONS, dataset_lines
from pytest_tfgrpo.production.report.figure_lines import alive, streams_text


def lines(**counts: Any) -> list[str]:
    known = {"trajectories": 0, "attempts": 0, "groups": 0, "without_session": 0, "left_out": {}}
    header: Any = SimpleNamespace(counts={**known, **counts})
    return " ".join(" ".join(dataset_lines(header)).split()).split("; of ")


def test_a_dataset_says_what_was_read_and_kept() -> None:
    assert lines(trajectories=1, attempts=1, groups=1) == ["read 1 trajectory kept 1 attempt at 1 task"]
    many = lines(trajectories=1200, attempts=2, groups=2, without_session=1000)
    assert many[0] == "read 1,200 trajectories kept 2 attempts at 2 tasks"
    assert many[1].startswith("1,000 neither user nor session is known")


def test_what_was_left_out_comes_with_its_reason_the_most_first() -> None:
    (text,) = lines(left_out={"unreadable": 2, "gone": 2, "no_reward": 1000})
    first, second, third = ("no_reward", "gone", "unreadable")
    said = [
        f"1,000 no_reward: {REASONS[first]}",
        f"2 gone: {REASONS[second]}",
        f"2 unreadable: {REASONS[third]}",
    ]
    assert text.endswith("left out " + " ".join(said))


def test_the_streams_are_named_in_the_singular_where_there_is_one_event() -> None:
    assert streams_text({}) == "nothing"
    assert alive({"RL_DEAD": 1, "RL_SPANS": 2}) == {"RL_SPANS": 2}
    one = streams_text({"RL_TRAJECTORIES": 1, "RL_REWARDS": 1, "RL_FEEDBACK": 0})
    many = streams_text({"RL_TRAJECTORIES": 1000, "RL_REWARDS": 2, "RL_FEEDBACK": 0})
    assert set(one.split(", ")) >= {"1 trajectory", "1 reward"}
    assert set(many.split(", ")) >= {"1,000 trajectories", "2 rewards"}
    assert streams_text({"RL_DEPLOYMENTS": 0, "RL_TRAINING": 0}) == "nothing"
