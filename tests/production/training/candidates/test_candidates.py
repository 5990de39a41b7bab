"""Candidates: which right answers become scenarios, in which order, and as what text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cuts import Cutter, cutter_on
from support.loop_events import feedback, publish, rewarded

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.events import derived_id
from pytest_tfgrpo.production.bus.embedded.bus import open_embedded
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.door.scrubber import LoopScrubber
from pytest_tfgrpo.production.forget import forget
from pytest_tfgrpo.production.training.candidates.candidates import (
    ScenarioCandidate,
    candidates_of,
    find_candidate,
)
from pytest_tfgrpo.production.training.candidates.right_answers import right_answers
from pytest_tfgrpo.production.training.candidates.scenario_text import candidate_text, write_candidates
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.scenario_files import scenarios_in


@pytest.fixture
def cutter(bus: Bus, tmp_path: Path) -> Iterator[Cutter]:
    with cutter_on(bus, tmp_path) as found:
        yield found


def found_on(cutter: Cutter, **domains: str) -> list[ScenarioCandidate]:
    cutter.view.catch_up(cutter.bus)
    return candidates_of(right_answers(cutter.bus, cutter.view), domains)


def say(cutter: Cutter, name: str, kind: str, of: str, **more: object) -> None:
    publish(cutter.bus, [feedback(name, kind, of, **more)])


def loaded(cutter: Cutter, candidate: ScenarioCandidate):
    text = candidate_text(cutter.bus, candidate)
    (found,) = scenarios_in(text, Path("x.scenario.yaml"), root=Path(), kinds=KINDS)
    return found


def test_a_label_is_a_check_and_a_correction_a_criterion(cutter: Cutter) -> None:
    cutter.add("a", 0.2)
    say(cutter, "l", "label", "a", text="gold", expected="It was shipped")
    say(cutter, "c", "correction", "a", text="you forgot the date")
    cutter.add("b", 0.3, prompt="Another")
    say(cutter, "d", "correction", "b", text="that is last year's price")
    first, second = (loaded(cutter, one) for one in found_on(cutter, general="orders"))
    assert (first.prompt, first.domain, first.split, first.truth) == (
        "Where is order 17?", "orders", "train", "checks",
    )  # fmt: skip
    assert [(check.kind, dict(check.params)) for check in first.checks] == [
        ("contains", {"value": "It was shipped"})
    ]
    assert first.rubric[0].text.endswith("you forgot the date")
    assert (second.truth, second.rubric[0].text.endswith("that is last year's price")) == ("judge", True)


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"text": "gold", "expected": 17}, "number"),
        ({"text": "gold", "expected": 0}, "number"),
        ({"text": "gold", "expected": {"orders": [17]}}, "json"),
        ({"text": "gold", "expected": True}, "json"),
        ({"text": "billing"}, "contains"),
        ({"text": "failed"}, None),
        ({"text": "hallucinated", "component": "faithfulness"}, None),
        ({"text": "gold", "expected": ""}, None),
    ],
)
def test_what_a_label_expects_decides_its_check(cutter: Cutter, said, kind) -> None:
    cutter.add("a", 0.2)
    say(cutter, "l", "label", "a", **said)
    assert [[check.kind for check in loaded(cutter, one).checks] for one in found_on(cutter)] == (
        [[kind]] if kind else []
    )


def test_a_long_expected_text_is_for_a_judge(cutter: Cutter) -> None:
    cutter.add("a", 0.2)
    say(cutter, "l", "label", "a", text="gold", expected="It was shipped. " * 50)
    (found,) = found_on(cutter)
    assert loaded(cutter, found).truth == "judge"


def test_thumbs_and_what_nobody_said_is_no_candidate(cutter: Cutter) -> None:
    cutter.add("a", 0.2)
    say(cutter, "t", "thumbs_down", "a", text="label", source="correction")
    say(cutter, "c", "correction", "a")
    say(cutter, "o", "correction", "nobody", text="no")
    cutter.add("b", 0.0, safety_blocked=True, prompt="B")
    say(cutter, "s", "correction", "b", text="no")
    assert found_on(cutter) == []


def test_the_worst_and_most_frequent_come_first_and_one_user_counts_once(cutter: Cutter) -> None:
    for n in range(3):
        cutter.add(f"a{n}", 0.5, prompt="Often")
        say(cutter, f"a{n}", "label", f"a{n}", text="gold", expected=("yes", "no", "yes")[n])
    for n in range(9):
        cutter.add(f"b{n}", 0.9, prompt="Loud", user="u-eve")
        say(cutter, f"b{n}", "label", f"b{n}", text="gold", expected="no")
    cutter.add("c", 0.0, prompt="Bad")
    say(cutter, "c", "correction", "c", text="wrong")
    found = found_on(cutter)
    assert [loaded(cutter, one).prompt for one in found] == ["Often", "Bad", "Loud"]
    assert [(one.owners, one.reward and round(one.reward, 3)) for one in found] == [
        (3, 0.5),
        (1, 0.0),
        (1, 0.9),
    ]
    assert found[0].expected == ['"yes"', '"no"']
    assert '# also expected: "no"' in candidate_text(cutter.bus, found[0])


def test_who_repeats_something_says_it_once(cutter: Cutter) -> None:
    for n, (who, value) in enumerate([("eve", "no")] * 4 + [("ada", "yes"), ("bob", "yes")]):
        cutter.add(f"a{n}", 0.5, user=f"u-{who}")
        say(cutter, f"a{n}", "label", f"a{n}", text="gold", expected=value)
    (found,) = found_on(cutter)
    assert (found.expected, found.owners) == (['"yes"', '"no"'], 3)


def test_ids_follow_from_the_task_whatever_comes_later(cutter: Cutter) -> None:
    cutter.add("a", 0.2)
    say(cutter, "l", "label", "a", text="gold", expected="yes")
    (before,) = found_on(cutter)
    cutter.add("b", 0.1, prompt="where is  order 17?", metadata={"policy_version": "v2"})
    say(cutter, "m", "correction", "b", text="no")
    (after,) = found_on(cutter)
    assert (after.id, after.sequence, after.owners) == (before.id, before.sequence, 2)
    assert find_candidate([after], after.id) is after
    with pytest.raises(StoreError, match="there is no candidate 'production-x'"):
        find_candidate([after], "production-x")


def test_a_newer_reward_counts(cutter: Cutter) -> None:
    cutter.add("a", 0.2)
    say(cutter, "l", "label", "a", text="gold", expected="yes")
    publish(cutter.bus, [rewarded("a", 0.75, revision=2)])
    assert [one.reward for one in found_on(cutter)] == [0.75]


def test_who_was_forgotten_is_in_no_candidate(cutter: Cutter) -> None:
    scrubber = LoopScrubber(b"k" * 32)
    cutter.add("a", 0.2, user=scrubber.user_ref("ada-lovelace"))
    say(cutter, "l", "label", "a", text="gold", expected="yes")
    assert len(found_on(cutter)) == 1
    forget(cutter.bus, cutter.view, scrubber=scrubber, actor="me", user="ada-lovelace", sleep=id)
    assert found_on(cutter) == []


def test_none_is_written_over_another_and_all_or_nothing(cutter: Cutter, tmp_path: Path) -> None:
    for name in "ab":
        cutter.add(name, 0.2, prompt=name)
        say(cutter, name, "label", name, text="gold", expected="yes")
    first, second = found_on(cutter)
    folder = tmp_path / "suite" / "new"
    (path,) = write_candidates(cutter.bus, [second], folder)
    mine = path.read_text() + "# mine\n"
    path.write_text(mine)
    with pytest.raises(StoreError, match="exists, and is left as it is"):
        write_candidates(cutter.bus, [first, second], folder)
    assert [*folder.iterdir()] == [path]
    assert path.read_text() == mine


def test_a_trajectory_that_is_gone_says_so(cutter: Cutter) -> None:
    cutter.add("a", 0.2)
    say(cutter, "l", "label", "a", text="gold", expected="yes")
    (found,) = found_on(cutter)
    with pytest.raises(StoreError, match="is no longer on the bus"):
        candidate_text(cutter.bus, replace(found, sequence=99))


def test_feedback_that_cannot_be_read_is_none(cutter: Cutter) -> None:
    cutter.add("a", 0.2)
    event = feedback("l", "label", "a", text="gold", expected=1.5)
    publish(cutter.bus, [replace(event, data=event.data.replace(b"1.5", b"1e999"))])
    assert found_on(cutter) == []


HOSTILE = st.one_of(
    st.text(min_size=1, max_size=40),
    st.sampled_from(
        [
            *(
                "- id: x\n  prompt: y",
                "# x",
                "---\n...",
                "a: b: c",
                "!!python/object:os.system",
                "*x &y",
                "17",
            ),
            *("yes", "'\"", "<|im_start|>system", "\u202eabc\u2028", "\x1b[2J", "{{ x }}", "|", "> \n\n x"),
        ]
    ),
)


@settings(max_examples=15, deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE)
def test_hostile_words_stay_data(tmp_path_factory, prompt: str, expected: str, said: str) -> None:
    folder = tmp_path_factory.mktemp("hostile")
    bus = open_embedded(folder / "bus.db")
    with cutter_on(bus, folder) as cutter:
        cutter.add("a", 0.2, prompt=prompt)
        say(cutter, "l", "label", "a", text="gold", expected=expected)
        say(cutter, "c", "correction", "a", text=said)
        for one in found_on(cutter):
            text = candidate_text(bus, one)
            assert text.replace("\n", "").isprintable()
            found = loaded(cutter, one)
            assert (found.id, found.split) == (one.id, "train")
            assert prompt.strip()
            for check in found.checks:
                assert check.params["value"] == json.loads(one.expected[0]).strip()
    bus.close()


def test_a_domain_of_trajectories_or_an_agent_names_the_suites(cutter: Cutter) -> None:
    cutter.add("a", 0.2)
    say(cutter, "l", "label", "a", text="gold", expected="yes")
    assert [one.domain for one in found_on(cutter, general="shop")] == ["shop"]
    assert [one.domain for one in found_on(cutter, **{"general": "shop", "support-bot": "orders"})] == [
        "orders"
    ]
    assert derived_id("a") in candidate_text(cutter.bus, found_on(cutter)[0])
