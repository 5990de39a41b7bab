"""What several agents use together."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.jobs import ScriptedActor, make_job, suite

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


def planned(tmp_path: Path, train: int = 4, sweep: int = 12, dev: int = 0, **changes: Any) -> Any:
    scenarios = suite(train=train + dev, sweep=sweep)
    scenarios = [replace(s, split="dev") if n < dev else s for n, s in enumerate(scenarios)]
    return make_job(ScriptedActor(lambda _: "3"), tmp_path, **{"scenarios": scenarios} | changes)


def rows_of(text: list[str]) -> list[list[str]]:
    table = text[text.index("") + 1 :]
    return [re.split(r"\s{2,}", row.strip()) for row in table[1 : table.index("")]]


def test_the_plan_counts_splits_dev_sweeps_and_the_rollouts_that_the_gate_may_add(tmp_path: Path) -> None:
    job = planned(tmp_path, dev=20, job_warnings=("one\tmore " + "word " * 30,))
    first = replace(job.phases[0], mode="evidence", sizes={"a": 7, "b": 2}, epoch=1)
    job = replace(job, phases=(first, *job.phases[1:]))
    text = plan_text.plan_text(job, Forecast(free=True, looks=(4, 8, 16)))
    assert text[:2] == [
        "dry run: the actor scripted was not called",
        "4 train, 20 dev and 12 eval scenarios; 0 lessons at the start",
    ]
    rows = {row[0]: row[1:] for row in rows_of(text)}
    assert rows[first.label] == ["-", "4", "2 to 7", "0"]
    assert rows["epoch2"] == ["0.7", "4", "4", "16"]
    assert rows[f"{first.label}-dev"] == rows["epoch2-dev"] == ["0.3", "20", "8", "up to 160"]
    sweep = 12 * 4
    assert rows["baseline"][-1] == f"up to {sweep}"
    assert rows[job.phases[-1].label][-1] == str(sweep)
    least, most = 16 + sweep, 16 + 2 * 160 + 2 * sweep
    assert rows["total"] == [f"{least} to {most}"]
    assert rows["at most"] == [str(most + 2 * sweep * 3)]
    said = " ".join(line.strip() for line in text)
    assert "warning: one more word word" in said
    assert (
        "at most 8, then 16 rollouts of each eval scenario in place of 4, while the gate cannot see a drop "
        "of 0.15 (gate_extend)"
    ) in said
    assert all(len(line) <= 80 for line in text)


@pytest.mark.parametrize(
    ("families", "said", "takes"),
    [
        ((), "", "a gain in only some scenarios takes more"),
        (("a",) * 6 + ("b",) * 6, " of 2 families", "so few families show nothing of others"),
        (("a", "a"), " of 11 families", "if some families gain all and others nothing, one of 0.52"),
    ],
)
def test_the_power_of_the_final_sweep_is_of_its_scenarios_and_families(
    families: tuple[str, ...], said: str, takes: str, tmp_path: Path
) -> None:
    named = dict(enumerate(families, start=4))  # the eval split comes after four train scenarios
    scenarios = [replace(s, family=named.get(n)) for n, s in enumerate(suite(4, 12))]
    text = plan_text.plan_text(planned(tmp_path, scenarios=scenarios), Forecast(free=True))
    power = " ".join(line.strip() for line in text[text.index("", text.index("") + 1) + 1 : -1])
    assert power.startswith(
        f"power   12 eval scenarios{said} x 4 rollouts detect a gain of 0.29 in 4 of 5 runs if every score "
        "is as uncertain as a coin toss; "
    )
    assert power.split("; ")[1] == takes
