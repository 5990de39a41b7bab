"""Additional rewarders: names that can be metrics, and results with reasons and parts."""

import math
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import make_rollout, make_scenario
from support.reached import reached, reaches

from pytest_tfgrpo.core.errors import RewarderError, SettingError
from pytest_tfgrpo.core.records import Score
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire
from pytest_tfgrpo.scoring.rewarders.additional import MAX_EVIDENCE, MAX_PARTS, require_rewarders
from pytest_tfgrpo.scoring.rewarders.judge import JudgeRewarder
from pytest_tfgrpo.scoring.rewarders.scoring import score

SCENARIO = make_scenario()
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"


@dataclass
class Style:
    results: Any = ()
    name: Any = "style"
    weight: Any = 0.0

    def __call__(self, batch: Any) -> Any:
        return self.results


def scored(*results: Any, credited: tuple[float | None, ...] = (), weight: float = 0.0) -> tuple[Score, ...]:
    """Return the scores of as many rollouts as there are results."""
    credited = credited or (1.0,) * len(results)
    rollouts = [make_rollout(i, credit) for i, credit in enumerate(credited)]
    return score(rollouts, {SCENARIO.id: SCENARIO}, [Style(list(results), weight=weight)])


def test_a_score_may_come_with_a_reason() -> None:
    plain, told = scored(0.25, (0.75, "it says please"))
    assert (plain.extra, plain.evidence) == ({"style": 0.25}, {})
    assert (told.extra, told.evidence) == ({"style": 0.75}, {"style": "it says please"})


def test_an_empty_reason_is_none() -> None:
    plain, parts = scored((0.25, ""), {"warmth": (1.0, "")})
    assert (plain.extra, plain.evidence, parts.evidence) == ({"style": 0.25}, {}, {})


def test_results_may_be_a_tuple() -> None:
    (found,) = score([make_rollout(0, 1.0)], {SCENARIO.id: SCENARIO}, [Style(((0.5, "dry"),))])
    assert (found.extra, found.evidence) == ({"style": 0.5}, {"style": "dry"})


def test_reasons_of_several_rewarders_stand_beside_each_other() -> None:
    both = [Style([(0.5, "dry")]), Style([(0.25, "long")], name="length")]
    (found,) = score([make_rollout(0, 1.0)], {SCENARIO.id: SCENARIO}, both)
    assert found.evidence == {"style": "dry", "length": "long"}


def test_a_reason_may_say_why_there_is_no_score() -> None:
    for nothing in (math.nan, None):
        (found,) = scored((nothing, "no answer to look at"))
        assert (found.extra, found.evidence) == ({"style": None}, {"style": "no answer to look at"})


def test_parts_have_names_of_their_own_and_their_mean_is_the_score() -> None:
    named, plain = scored({"warmth": (1.0, "warm"), "brevity": 0.5, "wit": None}, 0.1)
    assert named.extra == {"style": 0.75, "style.warmth": 1.0, "style.brevity": 0.5, "style.wit": None}
    assert named.evidence == {"style.warmth": "warm"}
    assert plain.extra == {"style": 0.1}


def test_parts_without_a_score_are_no_score() -> None:
    (found,) = scored({"warmth": None})
    assert found.extra == {"style": None, "style.warmth": None}
    assert scored({})[0].extra == {"style": None}


def test_the_mean_of_the_parts_joins_the_reward_by_weight() -> None:
    (found,) = scored({"warmth": 0.5, "brevity": 0.0}, credited=(1.0,), weight=1.0)
    assert found.reward == (1.0 + 0.25) / 2


def test_what_is_said_of_an_error_is_ignored() -> None:
    error, _ = scored({"un fit": 7}, (1.0, "fine"), credited=(None, 1.0))
    assert (error.extra, error.evidence) == ({"style": None}, {})


def test_a_reason_is_kept_short_and_without_secrets() -> None:
    long, secret, part = scored(
        (1.0, "x" * 5000), (1.0, f"it gave away {KEY}"), {"warmth": (1.0, f"{KEY} {'x' * 5000}")}
    )
    assert len(part.evidence["style.warmth"]) < MAX_EVIDENCE + 60
    assert KEY not in part.evidence["style.warmth"]
    assert len(long.evidence["style"]) < MAX_EVIDENCE + 60
    assert KEY not in secret.evidence["style"]
    assert "it gave away [redacted:" in secret.evidence["style"]


@pytest.mark.parametrize("at_the_end", [False, True])
def test_of_a_secret_where_a_long_reason_is_cut_nothing_is_kept(at_the_end: bool) -> None:
    """Its middle is left out."""
    for near in range(0, MAX_EVIDENCE, 8):
        short, long = "x " * (near // 2), "y " * MAX_EVIDENCE
        parts = (long, KEY, f" {short}") if at_the_end else (short, KEY, f" {long}")
        (found,) = scored((1.0, "".join(parts)))
        assert not [n for n in range(len(KEY) - 7) if KEY[n : n + 8] in found.evidence["style"]]


def test_scores_without_reasons_are_written_as_they_ever_were() -> None:
    assert "evidence" not in to_wire(scored(0.5)[0])
    told = scored((0.5, "why"))[0]
    assert from_wire(Score, to_wire(told)) == told


@pytest.mark.parametrize(
    ("result", "complaint"),
    [
        ((0.5, 3), "style' returned .0.5, 3. for rollout 'run1.e1.count-words.r0'.*number, text"),
        ((0.5, "a", "b"), "number, text"),
        ((1.5, "too much"), "'style' returned 1.5 for rollout 'run1.e1.count-words.r0'"),
        (("high", "a word"), "'style' returned 'high'"),
        ({"warmth": -1}, "'style.warmth' returned -1.0"),
        ({"warmth": {"x": 1}}, "'style.warmth' returned {'x': 1}"),
        ({"a b": 1.0}, "'style' names a score 'a b'; a name is"),
        ({"<b>": 1.0}, "names a score"),
        ({"": 1.0}, "names a score"),
        ({7: 1.0}, "names a score 7"),
        ({f"p{n}": 1.0 for n in range(MAX_PARTS + 1)}, "'style' names 51 scores of one rollout; at most 50"),
    ],
)
def test_a_result_that_is_none_is_named_with_its_rollout(result: Any, complaint: str) -> None:
    with pytest.raises(RewarderError, match=complaint):
        scored(result)


def test_as_many_results_as_rollouts_are_asked_for() -> None:
    with pytest.raises(RewarderError, match=r"returned scores of shape \(2,\).*shape \(1,\)"):
        scored((1.0, "a"), (1.0, "b"), credited=(1.0,))


@pytest.mark.parametrize(
    ("rewarder", "complaint"),
    [
        (Style(name="gt_score"), "'gt_score' belongs to a metric of every rollout"),
        (Style(name="relative_rank"), "belongs to a metric of every rollout"),
        (Style(name="reward"), "belongs to a metric of every rollout"),
        (Style(name="advantage"), "belongs to a metric of every rollout"),
        (Style(name="check"), r"'check' begins the names of other metrics \(check\.\*\); rename yours"),
        (Style(name="extra"), "begins the names of other metrics"),
        (Style(name="judge"), "begins the names of other metrics"),
        (Style(name="test"), "begins the names of other metrics"),
        (Style(name=""), "1 to 64 letters"),
        (Style(name="be nice"), "1 to 64 letters, .* not 'be nice'"),
        (Style(name="style.warmth"), "must be 1 to 64 letters"),
        (Style(name="<script>alert(1)</script>"), "must be 1 to 64 letters"),
        (Style(name="nice\n::error::x"), "must be 1 to 64 letters"),
        (Style(name="\u0440oliteness"), "must be 1 to 64 letters"),
        (Style(name="x" * 65), "must be 1 to 64 letters"),
        (Style(name=None), "the name of a rewarder must be 1 to 64 letters"),
        (Style(weight=-1), "weight -1; it must be"),
        (Style(weight=math.nan), "weight nan"),
        (Style(weight=math.inf), "weight inf"),
        (Style(weight="1"), "weight '1'"),
        (len, "has no attribute 'name'; add it"),
        (SimpleNamespace(name="style"), "has no attribute 'weight'; add it"),
        (SimpleNamespace(name="style", weight=1.0), "has no attribute '__call__'; add it"),
    ],
)
def test_a_rewarder_that_cannot_be_a_metric_is_refused(rewarder: Any, complaint: str) -> None:
    with pytest.raises(SettingError, match=complaint):
        require_rewarders([rewarder])


def test_the_judge_has_its_name_and_a_weight_may_be_as_large_as_a_number_is() -> None:
    require_rewarders([JudgeRewarder(0.5), Style(weight=sys.float_info.max)])


def test_two_rewarders_of_one_name_are_refused() -> None:
    with pytest.raises(SettingError, match="two rewarders are called 'style'; rename one"):
        require_rewarders([Style(), Style()])
    require_rewarders([Style(), Style(name="style-2")])


PARTS = st.dictionaries(st.sampled_from("abcd"), st.none() | st.floats(0, 1), max_size=4)


@reaches("parts")
@given(st.lists(PARTS | st.none() | st.floats(0, 1) | st.tuples(st.floats(0, 1), st.text()), min_size=1))
def test_whatever_the_form_scores_lie_in_their_range_and_have_the_reasons_that_were_given(
    results: list[Any],
) -> None:
    for found, result in zip(scored(*results), results, strict=True):
        assert all(value is None or 0 <= value <= 1 for value in found.extra.values())
        assert set(found.evidence) <= set(found.extra)
        if isinstance(result, dict):
            reached("parts", result)
            assert list(found.extra) == ["style", *(f"style.{name}" for name in result)]


def test_a_secret_at_the_cut_of_a_reason_leaves_no_part_of_it() -> None:
    reason = "x" * (MAX_EVIDENCE - MAX_EVIDENCE // 3 - 20) + f" {KEY} " + "y" * MAX_EVIDENCE
    (found,) = scored((0.5, reason))
    assert KEY[:12] not in found.evidence["style"]


def test_as_many_parts_as_there_may_be_are_kept() -> None:
    (found,) = scored({f"p{n}": 0.5 for n in range(MAX_PARTS)})
    assert len(found.extra) == MAX_PARTS + 1


@pytest.mark.parametrize("whole", [0, 1, True])
def test_a_whole_number_with_a_reason_is_a_score(whole: Any) -> None:
    (found,) = scored((whole, "all of it"))
    assert found.extra == {"style": float(whole)}
