"""The metrics: names, labels and buckets (decision 39), and a few more that alerts need."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

MetricKind: TypeAlias = Literal["counter", "gauge", "histogram"]
ALERT_OUTCOMES = ("ok", "failed")
JOB_ENDS = ("completed", "failed", "cancelled")
"""A training job counts once it has ended."""
DEPLOYED = ("canary", "held", "live", "retired", "rolled_back")
"""States of versions that users meet, or have met."""
OTHER = "other"
"""Stands for the values of a label beyond those that are kept apart."""


class MetricFamily(NamedTuple):
    """A metric with all its labels."""

    kind: MetricKind
    name: str
    about: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds, without the infinite one."""


TRAINING_JOBS = MetricFamily(
    "counter", "agent_rl_training_jobs_total", "Training jobs that ended, by how", ("status",)
)
TRAINING_DURATION = MetricFamily(
    "histogram",
    "agent_rl_training_duration_seconds",
    "Seconds from the first start of a training job to its end",
    buckets=(300, 600, 1800, 3600, 7200, 14400),
)
TRAINING_SAMPLES = MetricFamily(
    "histogram",
    "agent_rl_training_samples",
    "Attempts of production that a training job learned from",
    buckets=(1000, 5000, 10000, 50000, 100000),
)
REWARD_MEAN = MetricFamily(
    "gauge",
    "agent_rl_model_reward_mean",
    "Mean reward of a version's newest rewarded runs, by their newest revisions",
    ("model_version",),
)
BENCHMARK_SCORE = MetricFamily(
    "gauge",
    "agent_rl_model_benchmark_score",
    "Mean score on the eval split of the job that made a version, by domain",
    ("model_version", "task_type"),
)
TRAJECTORIES_COLLECTED = MetricFamily(
    "counter",
    "agent_rl_trajectories_collected_total",
    "Trajectories, each once, by profile or else agent, and by domain",
    ("agent_type", "task_domain"),
)
TRAJECTORY_LENGTH = MetricFamily(
    "histogram",
    "agent_rl_trajectory_length",
    "Turns of a trajectory, as it was published first",
    buckets=(1, 3, 5, 10, 20, 50),
)
TRAJECTORY_REWARD = MetricFamily(
    "histogram",
    "agent_rl_trajectory_reward",
    "First reward of a trajectory; later revisions are in agent_rl_model_reward_mean alone",
    buckets=(0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
)
MODEL_DEPLOYMENTS = MetricFamily(
    "counter", "agent_rl_model_deployments_total", "Versions that came into a state", ("status",)
)
TRAFFIC = MetricFamily(
    "gauge",
    "agent_rl_model_traffic_percentage",
    "Per cent of new sessions that meet a version",
    ("model_version",),
)
ERROR_RATE = MetricFamily(
    "gauge", "agent_rl_model_error_rate", "Share of failed runs among a version's newest", ("model_version",)
)
HELD = MetricFamily("gauge", "agent_rl_deployment_held", "1 while a ramp is held")
DEAD_LETTERS = MetricFamily("counter", "agent_rl_dead_letters_total", "Events that nobody could use")
LAST_TRAJECTORY = MetricFamily(
    "gauge", "agent_rl_last_trajectory_timestamp_seconds", "When the newest trajectory arrived, Unix time"
)
MISSED = MetricFamily(
    "counter", "agent_rl_missed_events_total", "Events that retention took before they were counted"
)
ALERT_CALLS = MetricFamily(
    "counter", "agent_rl_alert_calls_total", "Calls of [alerts] command, by outcome", ("outcome",)
)
OF_SOURCE = (
    *(TRAINING_JOBS, TRAINING_DURATION, TRAINING_SAMPLES, REWARD_MEAN, BENCHMARK_SCORE),
    *(TRAJECTORIES_COLLECTED, TRAJECTORY_LENGTH, TRAJECTORY_REWARD),
    *(MODEL_DEPLOYMENTS, TRAFFIC, ERROR_RATE),
)
OWN = (HELD, DEAD_LETTERS, LAST_TRAJECTORY, MISSED, ALERT_CALLS)
"""Those that alerts need."""
FAMILIES = (*OF_SOURCE, *OWN)
CLOSED: dict[str, tuple[str, ...]] = {
    TRAINING_JOBS.name: JOB_ENDS,
    MODEL_DEPLOYMENTS.name: DEPLOYED,
    ALERT_CALLS.name: ALERT_OUTCOMES,
}
"""All values of a counter's one label: each is there from the start, so that its first increase shows."""
