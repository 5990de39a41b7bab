"""Lines of the live report where little or nothing is known."""

from support.live_runs import rollout

from pytest_tfgrpo.live.records import ArmChoice
from pytest_tfgrpo.live.report import difference_lines, probability_lines

CHOICE = ArmChoice(
    point="config", place=0, arm="warm", arms={"warm": "1"}, probabilities={"warm": 1.0}, selector=1
)


def test_probabilities_are_by_category_and_one_without_a_name_says_so() -> None:
    categories = {"sea": {"x": 0.25, "y": 0.75}, "": {"y": 1.0}, "air": {"x": 1.0}}
    rows = [row.split() for row in probability_lines("config", categories)]
    assert rows[0] == ["config", "x", "y"]
    assert rows[-3:] == [["(none)", "0.00", "1.00"], ["air", "1.00", "0.00"], ["sea", "0.25", "0.75"]]


def test_a_difference_takes_two_runs_of_each() -> None:
    runs = [rollout(n, [CHOICE], 0.5 + n / 10, control=n == 0) for n in range(3)]
    told = [*difference_lines(runs)]
    assert told
    assert all(text.endswith("; a difference takes 2 runs of each") for text in told)
    more = [*runs, rollout(3, [CHOICE], 0.7, control=True)]
    assert all("; difference " in text for text in difference_lines(more))
    assert [*difference_lines([])] == []
