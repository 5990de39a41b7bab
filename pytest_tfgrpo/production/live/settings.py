"""Settings of live RL: a table of its own, ``TFGRPO_LIVE_RL_*`` before ``[settings]`` of ``live.toml``.

A setting ``x_y`` is the key ``x_y`` of the file and the variable ``TFGRPO_LIVE_RL_X_Y`` (decision 22).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import (
    choice,
    parse_bool,
    parse_task_id,
    parse_text,
    parse_text_or_none,
    real,
    whole,
)
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.settings import Origin, parse
from pytest_tfgrpo.core.texts.named_values import nearest

PREFIX = "TFGRPO_LIVE_RL_"
STRATEGIES = ("trace_v1", "trace_v2", "outcome_v1")
"""Reward inference by name; any other is ``python:module:callable``."""
Algorithm: TypeAlias = Literal["ppo", "grpo", "rloo"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LiveSettings:
    """The settings of a process; a row of `TABLE` says what each one does."""

    enabled: bool
    update_interval: int
    max_rollouts_per_update: int
    max_failure_streak: int
    max_blocked: int
    store: str | None
    config: str
    namespace: str
    algorithm: Algorithm
    inference: str
    outcome_wait_s: float
    failed_runs: Literal["worst", "inferred"]
    text: Literal["redacted", "none"]


def parse_inference(value: Any) -> str:
    """Return the spec of a strategy of reward inference."""
    spec = parse_text(value)
    if spec not in STRATEGIES and not (spec.startswith("python:") and spec.count(":") >= 2):
        raise ValueError(f"must be one of {', '.join(STRATEGIES)}, or python:module:callable")
    return spec


# fmt: off
_ROWS: tuple[Setting[Any], ...] = (
    Setting("live_rl_enabled", "none", parse_bool, False,
            "choose among the arms and learn; off: every run takes the default arm, nothing is written"),
    Setting("live_rl_update_interval", "none", whole(1, 100_000), 8,
            "ended runs, without control, between two updates of the selector"),
    Setting("live_rl_max_rollouts_per_update", "none", whole(1, 100_000), 64,
            "most runs that one update uses"),
    Setting("live_rl_max_failure_streak", "none", whole(1, 100_000), 3,
            "failures of the store or of updates in a row that hold the gate"),
    Setting("live_rl_max_blocked", "none", whole(1, 32), 3,
            "runs blocked by safety, of the last 32, that hold the gate"),
    Setting("live_rl_store", "none", parse_text_or_none, "live.db",
            "SQLite file of runs and selectors; none: memory, which ends with the process"),
    Setting("live_rl_config", "none", parse_text, "live.toml",
            "file with the points, their arms and these settings"),
    Setting("live_rl_namespace", "none", parse_task_id, "default",
            "part of the ids of rollouts and of the seeds of draws"),
    Setting("live_rl_algorithm", "none", choice("ppo", "grpo", "rloo"), "ppo",
            "how an update moves the probabilities"),
    Setting("live_rl_inference", "none", parse_inference, "trace_v2",
            "what makes a run's reward: trace_v1, trace_v2, outcome_v1 or python:module:callable"),
    Setting("live_rl_outcome_wait_s", "none", real(0, 31_536_000), 0.0,
            "seconds that an update waits for the outcome of a run that ended without a score"),
    Setting("live_rl_failed_runs", "none", choice("worst", "inferred"), "worst",
            "a run that failed and has no score counts as one with score 0, or as `inference` says"),
    Setting("live_rl_text", "none", choice("redacted", "none"), "redacted",
            "prompts and replies without secrets, e-mail, phone and card numbers, or their lengths alone"),
)
# fmt: on
TABLE: Mapping[str, Setting[Any]] = {row.name.removeprefix("live_rl_"): row for row in _ROWS}
"""By key of the file."""


def resolve_live(
    arguments: Mapping[str, Any], environ: Mapping[str, str], file: Mapping[str, Any], path: str
) -> LiveSettings:
    """Return the settings: an argument beats the environment, which beats the file at `path`.

    Every value that is set is checked, also where a stronger one overrides it. Raises SettingError naming the
    argument, the variable, or the file and its key; also for names that there are not.
    """
    require_known("argument", arguments)
    for name in environ:
        if name.startswith(PREFIX) and name.removeprefix(PREFIX).lower() not in TABLE:
            known = [PREFIX + key.upper() for key in TABLE]
            raise SettingError(f"unknown environment variable {name}{nearest(name, known) or '; unset it'}")
    require_known(f"{path}: [settings]: key", file)
    if "config" in file:
        raise SettingError(f"{path}: [settings] config names this very file; set {PREFIX}CONFIG instead")
    return LiveSettings(**{key: _value(key, arguments, environ, file, path) for key in TABLE})


def require_known(place: str, names: Mapping[str, Any]) -> None:
    """Raise SettingError for the first name that is no setting."""
    for name in names:
        if name not in TABLE:
            raise SettingError(f"{place} {name!r} is no setting{nearest(name, TABLE) or '; remove it'}")


def _value(
    key: str, arguments: Mapping[str, Any], environ: Mapping[str, str], file: Mapping[str, Any], path: str
) -> Any:
    variable = PREFIX + key.upper()
    given = [Origin(arguments[key], f"argument {key}")] if key in arguments else []
    given += [Origin(environ[variable], f"environment {variable}")] if variable in environ else []
    given += [Origin(file[key], f"{path}: [settings] {key}")] if key in file else []
    parsed = [parse(TABLE[key], origin) for origin in given]
    return parsed[0] if parsed else TABLE[key].default
