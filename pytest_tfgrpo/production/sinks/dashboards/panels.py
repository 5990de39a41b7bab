"""What each dashboard shows: panels with their queries, in PromQL.

Services on one bus answer with the same figures, so that a query takes the largest over them, never the sum.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from pytest_tfgrpo.production.sinks.prometheus.families import (
    ALERT_CALLS,
    BENCHMARK_SCORE,
    DEAD_LETTERS,
    ERROR_RATE,
    HELD,
    LAST_TRAJECTORY,
    MISSED,
    MODEL_DEPLOYMENTS,
    REWARD_MEAN,
    TRAFFIC,
    TRAINING_DURATION,
    TRAINING_JOBS,
    TRAINING_SAMPLES,
    TRAJECTORIES_COLLECTED,
    TRAJECTORY_LENGTH,
    TRAJECTORY_REWARD,
    MetricFamily,
)

PanelKind: TypeAlias = Literal["timeseries", "stat", "bargauge", "heatmap"]
PanelUnit: TypeAlias = Literal["short", "percent", "percentunit", "s"]
JOB = 'job="$job"'
"""The loop that is chosen in the dashboard: its job in Prometheus."""


class PanelQuery(NamedTuple):
    """A query, and the name of each of its series."""

    expr: str
    legend: str = ""


class DashboardPanel(NamedTuple):
    """A panel, with what it needs to be read."""

    title: str
    about: str
    queries: tuple[PanelQuery, ...]
    kind: PanelKind = "timeseries"
    unit: PanelUnit = "short"


class DashboardPage(NamedTuple):
    """A dashboard."""

    file: str
    title: str
    panels: tuple[DashboardPanel, ...]


def now(family: MetricFamily) -> PanelQuery:
    """Return a gauge by its labels."""
    series = f"{family.name}{{{JOB}}}"
    if not family.labels:
        return PanelQuery(f"max({series})")
    legend = " ".join(f"{{{{{label}}}}}" for label in family.labels)
    return PanelQuery(f"max by ({', '.join(family.labels)}) ({series})", legend)


def grown(family: MetricFamily, over: str, *by: str) -> PanelQuery:
    """Return how much a counter grew, by some of its labels, of which the others are added up."""
    grew = f"max by ({', '.join(family.labels)}) (increase({family.name}{{{JOB}}}[{over}]))"
    if not family.labels:
        return PanelQuery(f"max(increase({family.name}{{{JOB}}}[{over}]))")
    return PanelQuery(f"sum by ({', '.join(by)}) ({grew})", " ".join(f"{{{{{label}}}}}" for label in by))


def buckets(family: MetricFamily, over: str) -> str:
    """Return how much the buckets of a histogram grew."""
    return f"max by (le) (increase({family.name}_bucket{{{JOB}}}[{over}]))"


def quantiles(family: MetricFamily, over: str, *shares: float) -> tuple[PanelQuery, ...]:
    """Return quantiles of what was observed."""
    grew = buckets(family, over)
    return tuple(PanelQuery(f"histogram_quantile({share}, {grew})", f"{share:.0%}") for share in shares)


def mean(family: MetricFamily, over: str) -> PanelQuery:
    """Return the mean of what was observed."""
    parts = [f"max(increase({family.name}_{part}{{{JOB}}}[{over}]))" for part in ("sum", "count")]
    return PanelQuery(" / ".join(parts), "mean")


def share_up_to(family: MetricFamily, bound: float, over: str) -> PanelQuery:
    """Return the share of what was observed that is no more than a bound of a bucket."""
    low = f'max(increase({family.name}_bucket{{{JOB}, le="{float(bound)}"}}[{over}]))'
    return PanelQuery(f"{low} / max(increase({family.name}_count{{{JOB}}}[{over}]))", f"at most {bound:g}")


TRAINING_OVERVIEW = DashboardPage(
    "rl-training-overview.json",
    "RL Training Overview",
    (
        DashboardPanel("Jobs that ended", "In the last 24 hours.", (grown(TRAINING_JOBS, "1d", "status"),)),
        DashboardPanel(
            "Duration of a job",
            "From its first start to its end, in the last 7 days; estimated within buckets.",
            quantiles(TRAINING_DURATION, "7d", 0.5, 0.9),
            unit="s",
        ),
        DashboardPanel(
            "Attempts that a job learned from", "In the last 7 days.", (mean(TRAINING_SAMPLES, "7d"),)
        ),
        DashboardPanel(
            "Score on the eval split",
            "Of the newest versions, by domain, as their jobs measured it.",
            (now(BENCHMARK_SCORE),),
            "bargauge",
        ),
        DashboardPanel(
            "Trajectories to learn from",
            "In the last 24 hours.",
            (grown(TRAJECTORIES_COLLECTED, "1d", "task_domain"),),
        ),
        DashboardPanel(
            "Calls of the alert command",
            "In the last 24 hours.",
            (grown(ALERT_CALLS, "1d", "outcome"),),
            "stat",
        ),
    ),
)
MODEL_COMPARISON = DashboardPage(
    "model-performance-comparison.json",
    "Model Performance Comparison",
    (
        DashboardPanel(
            "Mean reward",
            "Of a version's newest 500 runs. Versions that meet different users differ for that alone: "
            "`tfgrpo loop status` has what the monitor concludes.",
            (now(REWARD_MEAN),),
        ),
        DashboardPanel(
            "Failed runs", "Share of a version's newest 500 runs.", (now(ERROR_RATE),), unit="percentunit"
        ),
        DashboardPanel(
            "Share of new sessions", "Of each version that is served.", (now(TRAFFIC),), unit="percent"
        ),
        DashboardPanel("Score on the eval split", "By domain.", (now(BENCHMARK_SCORE),), "bargauge"),
        DashboardPanel(
            "Versions that came into a state",
            "In the last 24 hours.",
            (grown(MODEL_DEPLOYMENTS, "1d", "status"),),
        ),
        DashboardPanel("Held ramp", "1 while a ramp is held.", (now(HELD),), "stat"),
    ),
)
TRAJECTORY_QUALITY = DashboardPage(
    "trajectory-quality-metrics.json",
    "Trajectory Quality Metrics",
    (
        DashboardPanel(
            "Trajectories an hour, by agent",
            "The first 20 agents; the others are `other`.",
            (grown(TRAJECTORIES_COLLECTED, "1h", "agent_type"),),
        ),
        DashboardPanel(
            "Trajectories an hour, by domain",
            "As the spans name it.",
            (grown(TRAJECTORIES_COLLECTED, "1h", "task_domain"),),
        ),
        DashboardPanel(
            "Turns of a trajectory",
            "In the last 6 hours; estimated within buckets.",
            quantiles(TRAJECTORY_LENGTH, "6h", 0.5, 0.9),
        ),
        DashboardPanel(
            "Short trajectories",
            "Share of those of the last 6 hours.",
            (share_up_to(TRAJECTORY_LENGTH, 1, "6h"), share_up_to(TRAJECTORY_LENGTH, 5, "6h")),
            unit="percentunit",
        ),
        DashboardPanel(
            "Since the newest trajectory",
            "Seconds.",
            (PanelQuery(f"time() - {now(LAST_TRAJECTORY).expr}"),),
            "stat",
            "s",
        ),
        DashboardPanel(
            "Events that are lost",
            "Dead letters of the last 24 hours, and events that left before they were counted.",
            (
                PanelQuery(grown(DEAD_LETTERS, "1d").expr, "dead letters"),
                PanelQuery(grown(MISSED, "1d").expr, "not counted"),
            ),
            "stat",
        ),
    ),
)
REWARD_DISTRIBUTION = DashboardPage(
    "reward-distribution.json",
    "Reward Distribution",
    (
        DashboardPanel(
            "First rewards",
            "How many trajectories an hour have which reward, before what users say later.",
            (PanelQuery(buckets(TRAJECTORY_REWARD, "1h"), "{{le}}"),),
            "heatmap",
        ),
        DashboardPanel(
            "Quartiles of first rewards",
            "In the last 6 hours; estimated within buckets.",
            quantiles(TRAJECTORY_REWARD, "6h", 0.25, 0.5, 0.75),
        ),
        DashboardPanel("Mean of first rewards", "In the last 6 hours.", (mean(TRAJECTORY_REWARD, "6h"),)),
        DashboardPanel(
            "Bad attempts",
            "Share of first rewards of the last 6 hours.",
            (share_up_to(TRAJECTORY_REWARD, 0.2, "6h"), share_up_to(TRAJECTORY_REWARD, 0.4, "6h")),
            unit="percentunit",
        ),
        DashboardPanel(
            "Mean reward by version",
            "Of its newest 500 runs, with what users said since.",
            (now(REWARD_MEAN),),
        ),
        DashboardPanel(
            "Rewarded trajectories an hour",
            "Those of which enough is known.",
            (PanelQuery(f"max(increase({TRAJECTORY_REWARD.name}_count{{{JOB}}}[1h]))"),),
        ),
    ),
)
PAGES = (TRAINING_OVERVIEW, MODEL_COMPARISON, TRAJECTORY_QUALITY, REWARD_DISTRIBUTION)
