"""What several agents use together."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.jobs import ScriptedActor, make_job

from pytest_tfgrpo.estimate import plan_text
from pytest_tfgrpo.estimate.forecast import Forecast
from pytest_tfgrpo.estimate.lines import estimate_lines
from pytest_tfgrpo.estimate.plan_text import together
from pytest_tfgrpo.estimate.ranges import Figures, Range


def part(
    name: str, counts: tuple[int, int, int], cost: float | str | None = None, **budget: float
) -> tuple[str, Any, Any]:
    """Return an agent; a text for `cost` says how its cost is known."""
    settings = {f"budget_{unit}": budget.get(unit) for unit in ("usd", "tokens", "s")}
    most = SimpleNamespace(usd=None if cost is None or isinstance(cost, str) else Range(0.0, cost))
    declared = {"usd": 2.0} if cost == "declared" else {} if cost == "silent" else None
    found = SimpleNamespace(looks=(), free=cost == "free", declared=declared, most=most)
    return name, SimpleNamespace(settings=settings, counts=counts), found


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (
            [part("a", (4, 4, 0), 1.0), part("b", (6, 6, 0), 0.5)],
            "2 agents together: 10 rollouts; at most $1.50",
        ),
        (
            [part("a", (4, 5, 2), 1.0, usd=3), part("b", (6, 6, 1), None)],
            "2 agents together: 10 to 11 rollouts (at most 14); at most $1.00, and what b may cost, which is "
            "unknown; budget_usd = 3 is for all of them",
        ),
        (
            [part("a", (1, 1, 0), None, tokens=900, s=60), part("b", (1, 1, 0), "silent")],
            "2 agents together: 2 rollouts; cost unknown; budget_tokens = 900 and budget_s = 60 are for "
            "all of them",
        ),
        (
            [part("a", (1, 1, 0), "free"), part("b", (1, 1, 0), "declared")],
            "2 agents together: 2 rollouts; at most $2.00",
        ),
    ],
)
def test_what_agents_use_together_is_one_sum_and_names_what_is_unknown(
    parts: list[Any], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_text, "rollouts_of", lambda job, looks: job.counts)
    assert " ".join(row.strip() for row in together(parts)) == text


@pytest.mark.parametrize("usd", [0.0, 2.5])
def test_a_line_of_several_agents_is_wrapped_under_itself(
    usd: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_text, "rollouts_of", lambda job, looks: job.counts)
    parts = [part(name, (400, 500, 200), None if name == "c" else usd, usd=3) for name in "abc"]
    cost = "0.00" if not usd else "5.00"
    assert together(parts) == [
        f"3 agents together: 1200 to 1500 rollouts (at most 2100); at most ${cost}, and what",
        "  c may cost, which is unknown; budget_usd = 3 is for all of them",
    ]


@pytest.mark.parametrize(("most", "said"), [(None, "$1.00"), (2.5, "$1.00, or $2.50 if the gate")])
def test_what_an_actor_declares_is_shown_with_the_most_that_the_gate_may_add(
    most: float | None, said: str
) -> None:
    more = None if most is None else Figures(tokens=None, usd=Range(0.0, most))
    cost, _ = estimate_lines(Forecast(declared={"usd": 1.0, "tokens": None}, declared_most=more))
    assert cost.startswith(f"cost    at most {said}")


@pytest.mark.parametrize(("certain", "said"), [(3, "12"), (2, "up to 12")])
def test_the_plan_says_which_calls_are_certain_and_that_three_scenarios_show_nothing(
    certain: int, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = make_job(ScriptedActor(lambda _: "3"), tmp_path)
    monkeypatch.setattr(plan_text, "asked", lambda job, phase: (phase.scenarios[:certain], phase.scenarios))
    text = plan_text.plan_text(job, Forecast(free=True))
    (row,) = (row for row in text if row.startswith("baseline"))
    assert "power   unknown: 3 eval scenarios are too few for an interval" in text
    assert row.endswith(f"  {said}")
