"""Options of a start that sets none of them: any conftest.py may read them, and to declare them costs little.

To declare each with its type and help, which takes what all settings are, is for a start that may set one.
"""

from __future__ import annotations

import argparse
from typing import Any, NoReturn

import pytest

NAMES = (
    "actor",
    "domain_agents",
    "optimizer",
    "teacher",
    "judge",
    "user",
    "judge_votes",
    "judge_weight",
    "models",
    "max_tokens",
    "max_steps",
    "tools",
    "record",
    "command_output",
    "part_thoughts",
    "group_size",
    "eval_rollouts",
    "epochs",
    "sample_size",
    "temperature_train",
    "temperature_eval",
    "experience_max_words",
    "acceptance",
    "acceptance_margin",
    "acceptance_rollouts",
    "dev_share",
    "lesson_dropout",
    "retire_after",
    "library_cap",
    "eval_mode",
    "baseline_sweep",
    "placebo_sweep",
    "evidence",
    "untested",
    "headroom",
    "concurrency",
    "timeout_s",
    "rewarder_timeout_s",
    "answer_max_bytes",
    "library",
    "patterns",
    "prompt_packs",
    "budget_usd",
    "budget_tokens",
    "budget_s",
    "limit",
    "seed",
    "task_id",
    "out",
    "executor",
    "sandbox",
    "sandbox_readable",
    "sandbox_writable",
    "sandbox_env",
    "sandbox_network",
    "sandbox_limits",
    "check_sandbox",
    "allow_paid",
    "min_score",
    "baseline",
    "gate_margin",
    "gate_alarm",
    "gate_extend",
    "gate_min_mean",
    "gate_max_errors",
    "gate_max_cost_per_success_usd",
    "gate_sequential",
    "gates",
    "contamination",
    "gate_strict",
    "otel",
    "otel_content",
)
"""Names of all settings: a table without what loads them."""


class _Late(argparse.Action):
    """Refuses a flag that something adds after pytest has read the command line."""

    def __call__(self, *given: Any, **_: Any) -> NoReturn:
        """Raise pytest.UsageError."""
        raise pytest.UsageError(
            f"{given[-1]} comes after pytest has looked for flags; write it on the command line, or into "
            "addopts"
        )


def declare(parser: pytest.Parser, config: pytest.Config) -> None:
    """Let ``config.getoption`` and ``config.getini`` return None for every setting."""
    flags = [f"--tfgrpo-{name.replace('_', '-')}" for name in ("resume", *NAMES)]
    group = parser.getgroup("tfgrpo-unset")
    group.addoption(
        *flags, dest="tfgrpo_unset", action=_Late, nargs="?", default=None, help=argparse.SUPPRESS
    )
    for name in NAMES:
        parser.addini(f"tfgrpo_{name}", "", default=None)
    vars(config.option).update({f"tfgrpo_{name}": None for name in ("resume", *NAMES)})
