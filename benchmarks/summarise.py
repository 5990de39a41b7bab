"""Cost of a summary per tool call: the demanded bar is 50 ms, the aim 0.1 ms.

Run: python benchmarks/summarise.py
"""

from __future__ import annotations

import statistics
import time

from pytest_tfgrpo.core.records import CheckResult, Frame, Rollout
from pytest_tfgrpo.core.scenarios import Check, Scenario
from pytest_tfgrpo.report.rollout_summary import summarise

CALLS = 10
ROLLOUTS = 2000
ROUNDS = 5


def rollout() -> Rollout:
    """Return a rollout with `CALLS` tool calls."""
    frames = tuple(
        Frame(kind="tool", name=f"tool_{n % 4}", input={"n": n}, output="some output text " * 20, tokens=40)
        for n in range(CALLS)
    )
    return Rollout(
        rollout_id="r.e1.s.r0", group_id="r.e1.s", run_id="r", scenario_id="s", epoch=1, mode="train",
        index=0, seed=1, temperature=0.7, status="ok", answer="forty two", frames=frames,
        checks=(CheckResult(kind="exact", weight=1.0, credit=1.0),),
    )  # fmt: skip


def main() -> None:
    """Print the median time per tool call over some rounds."""
    scenario = Scenario(
        id="s", domain="d", split="train", prompt="How many words are in the letter, if names count twice?",
        checks=(Check(kind="exact", params={"value": "42"}),),
    )  # fmt: skip
    one = rollout()
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(ROLLOUTS):
            summarise(one, scenario)
        times.append((time.perf_counter() - started) / (ROLLOUTS * CALLS) * 1e6)
    median = statistics.median(times)
    print(f"summarise: {median:.1f} us per tool call (median of {ROUNDS} rounds of {ROLLOUTS} rollouts)")
    print(f"demanded 50 ms: {50_000 / median:,.0f} times faster; aim 0.1 ms: {100 / median:.1f} times faster")


if __name__ == "__main__":
    main()
