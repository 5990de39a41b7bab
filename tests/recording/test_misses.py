"""What a replay says of what its recording does not have."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.recording import misses


def entry(
    asked: str = "s1", prompt: str = "p1", temperature: float = 0.5, seed: int = 1, seen: str = "x"
) -> Any:
    return SimpleNamespace(asked=asked, prompt=prompt, temperature=temperature, seed=seed, seen=seen)


@pytest.mark.parametrize(
    ("known", "short", "whole"),
    [
        ([], misses.NEVER, misses.NEVER),
        ([entry(asked="other")], misses.STAMP, misses.STAMP),
        ([entry(asked="other"), entry(asked="old", seen="")], misses.OLD_STAMP, misses.OLD_STAMP),
        ([entry(prompt="p2"), entry(asked="other")], misses.PROMPT, misses.PROMPT),
        (
            [entry(temperature=t) for t in (0.7, 0.25, 0.7)] + [entry(prompt="p2", temperature=0.5)],
            "the temperature changed",
            "temperature 0.5, recorded 0.7, 0.25",
        ),
        (
            [entry(seed=n) for n in range(2, 7)] + [entry(temperature=0.7, seed=9)],
            "the seed changed",
            "seed 1 is not recorded (recorded: 2, 3, 4 and 2 more)",
        ),
    ],
)
def test_the_first_thing_that_differs_is_named(known: list[Any], short: str, whole: str) -> None:
    found = misses.why_no_rollout(known, asked={"s1", "s2"}, prompt="p1", temperature=0.5, seed=1)
    assert found == (short, whole)


def test_where_nothing_is_known_of_a_scenario_its_stamp_is_no_difference() -> None:
    found = misses.why_no_rollout([entry("?", "p2")], asked=None, prompt="p1", temperature=0.5, seed=1)
    assert found[0] == misses.PROMPT


@pytest.mark.parametrize(
    ("prompts", "why"), [([], misses.NEVER), (["a", "b"], misses.OPTIONS), (["b"], misses.CALL)]
)
def test_a_call_differs_by_its_text_or_by_its_options(prompts: list[str], why: str) -> None:
    known: Any = [SimpleNamespace(prompt=prompt) for prompt in prompts]
    assert misses.why_no_call(known, "a") == why


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ([1], "1"),
        ([1, 2, 3], "1, 2, 3"),
        ([1, 1, 2, 3], "1, 2, 3"),
        ([1, 2, 3, 4], "1, 2, 3 and 1 more"),
        ([9, 8, 7, 6, 5], "9, 8, 7 and 2 more"),
    ],
)
def test_recorded_seeds_are_named_up_to_three(seeds: list[int], said: str) -> None:
    known = [entry(seed=seed) for seed in seeds]
    found = misses.why_no_rollout(known, asked=None, prompt="p1", temperature=0.5, seed=0)
    assert found == ("the seed changed", f"seed 0 is not recorded (recorded: {said})")
