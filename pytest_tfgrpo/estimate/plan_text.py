"""The text of a dry run: what a run would do, and what it would use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from pytest_tfgrpo.core.records import Phase
from pytest_tfgrpo.core.settings.gate import GATE_ALARM
from pytest_tfgrpo.core.settings.runs import BUDGET_S, BUDGET_TOKENS, BUDGET_USD
from pytest_tfgrpo.core.texts.text import line, money, plural, table, wrapped
from pytest_tfgrpo.estimate.assumptions import asked
from pytest_tfgrpo.estimate.forecast import Forecast, rollouts_of
from pytest_tfgrpo.estimate.lines import estimate_lines
from pytest_tfgrpo.numerics.planning import COIN, planned_effect, uneven_effect
from pytest_tfgrpo.numerics.stats import effective_families
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.schedule import dev_phase, most_rollouts
from pytest_tfgrpo.suite.families import families_of


def plan_text(job: Job, forecast: Forecast) -> list[str]:
    """Return what a run would do: scenarios per split, rollouts per phase, and what they will use."""
    splits = Counter(s.split for s in job.scenarios)
    dev = f", {splits['dev']} dev" if splits["dev"] else ""
    least, most, more = rollouts_of(job, forecast.looks)
    rows = [row for phase in job.phases for row in _planned(phase, job)]
    return [
        f"dry run: the actor {line(job.actor.name, 200)} was not called",
        f"{splits['train']} train{dev} and {splits['eval']} eval scenarios; "
        f"{plural(len(job.library.experiences), 'lesson')} at the start",
        *([] if job.reference is None else [f"baseline: {line(job.reference.title, 120)}"]),
        "",
        *table(
            ["", "temp", "scenarios", "rollouts each", "calls"],
            [
                *rows,
                ["total", "", "", "", str(most) if most == least else f"{least} to {most}"],
                *([["at most", "", "", "", str(most + more)]] if more else []),
            ],
        ),
        *(text for why in job.warnings for text in wrapped(f"warning: {line(why, 400)}", 80, hanging="  ")),
        "",
        *_power(job),
        *(_again(job, forecast.looks) if more else []),
        *estimate_lines(forecast),
    ]


def together(parts: Sequence[tuple[str, Job, Forecast]]) -> list[str]:
    """Return what the runs of several agents use together: they share one budget."""
    counts = [rollouts_of(job, found.looks) for _, job, found in parts]
    least, most, more = (sum(numbers) for numbers in zip(*counts, strict=True))
    rollouts = str(most) if least == most else f"{least} to {most}"
    usd = [(agent, _most_usd(found)) for agent, _, found in parts]
    known = [value for _, value in usd if value is not None]
    unknown = [agent for agent, value in usd if value is None]
    cost = f"at most {money(sum(known))}" if known else "cost unknown"
    if known and unknown:
        cost += f", and what {', '.join(line(agent) for agent in unknown)} may cost, which is unknown"
    limits = [
        f"{row.name} = {limit:g}"
        for row in (BUDGET_USD, BUDGET_TOKENS, BUDGET_S)
        if (limit := row.of(parts[0][1].settings)) is not None
    ]
    shared = (
        f"; {' and '.join(limits)} {'is' if len(limits) == 1 else 'are'} for all of them" if limits else ""
    )
    further = f" (at most {most + more})" if more else ""
    return wrapped(
        f"{len(parts)} agents together: {rollouts} rollouts{further}; {cost}{shared}", 80, hanging="  "
    )


def _most_usd(found: Forecast) -> float | None:
    """Return the most that a run is expected to cost; None where that is unknown."""
    if found.free:
        return 0.0
    if found.declared is not None:
        return found.declared.get("usd")
    usd = found.most.usd
    return None if usd is None else usd.high


def _planned(phase: Phase, job: Job) -> Iterator[list[str]]:
    """Yield the row of a phase, and that of the dev split that decides on its lessons."""
    number, (certain, perhaps) = len(phase.scenarios), asked(job, phase)
    if phase.asks:
        calls = f"{'up to ' * (certain != perhaps)}{len(perhaps) * phase.rollouts}"
        yield [phase.label, f"{phase.temperature:g}", str(number), str(phase.rollouts), calls]
    else:
        each = [*phase.sizes.values()]
        yield [phase.label, "-", str(number), f"{min(each)} to {max(each)}", "0"]
    if phase.dev:
        sweep = dev_phase(phase, phase.dev, job.settings)
        most = f"up to {most_rollouts(phase, job.settings)}"
        yield [
            f"{phase.label}-dev", f"{sweep.temperature:g}", str(len(phase.dev)), str(sweep.rollouts), most,
        ]  # fmt: skip


def _again(job: Job, looks: Sequence[int]) -> list[str]:
    """Return when the final sweep takes more rollouts than planned."""
    alarm, later = GATE_ALARM.of(job.settings), ", then ".join(map(str, looks[1:]))
    text = (
        f"at most {later} rollouts of each eval scenario in place of {looks[0]}, while the gate cannot see a "
        f"drop of {alarm:g} (gate_extend)"
    )
    return wrapped(text, 80, hanging=" " * 8)


def _power(job: Job) -> list[str]:
    """Return what the final sweep can show at the size that is planned."""
    sweep = next((phase for phase in reversed(job.phases) if phase.mode == "eval"), None)
    if sweep is None:
        return []
    scenarios, effect = len(sweep.scenarios), planned_effect(len(sweep.scenarios), sweep.rollouts)
    if effect is None:
        few = plural(scenarios, "eval scenario", "is", "are")
        return [f"power   unknown: {few} too few for an interval"]
    own = families_of(s for s in job.scenarios if s.id in sweep.scenarios)
    families = [own.get(id_, id_) for id_ in sweep.scenarios]
    shared = "" if len(set(families)) == scenarios else f" of {len(set(families))} families"
    size = f"{plural(scenarios, 'eval scenario')}{shared} x {plural(sweep.rollouts, 'rollout')}"
    text = (
        f"power   {size} detect a gain of {effect:.2f} in 4 of 5 runs if every score is as uncertain as a "
        f"coin toss; {_takes(scenarios, sweep.rollouts, families if shared else ())}"
    )
    return wrapped(text, 80, hanging=" " * 8)


def _takes(scenarios: int, rollouts: int, families: Sequence[str]) -> str:
    """Return what it takes to detect a gain that not all scenarios share; `families` where some share one."""
    if not families:
        return "a gain in only some scenarios takes more"
    apart = uneven_effect(COIN, 1.0, scenarios, rollouts, effective_families(families))
    if apart is None:
        return "so few families show nothing of others"
    return f"if some families gain all and others nothing, one of {apart:.2f}"
