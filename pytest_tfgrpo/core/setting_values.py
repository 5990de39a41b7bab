"""The type of each setting's value, for mypy; a test keeps it equal to the table in `core.settings`."""

from __future__ import annotations

from typing import Literal, TypedDict


class SettingValues(TypedDict, total=False):
    """The values of settings by name, as a run has them; one made before a setting existed lacks it."""

    actor: str | None
    domain_agents: str | None
    optimizer: str
    teacher: str | None
    judge: str | None
    user: str
    judge_votes: int
    judge_weight: float
    models: str | None
    max_tokens: int
    max_steps: int
    tools: str | None
    record: str | None
    command_output: Literal["frames", "claude", "codex"]
    part_thoughts: bool
    group_size: int
    eval_rollouts: int
    epochs: int
    sample_size: int
    temperature_train: float
    temperature_eval: float
    experience_max_words: int
    acceptance: Literal["strict", "safe", "off"]
    acceptance_margin: float
    acceptance_rollouts: int
    dev_share: float
    lesson_dropout: float
    retire_after: int
    library_cap: int
    eval_mode: Literal["last_epoch", "separate"]
    baseline_sweep: Literal["concurrent", "early", "both", "off"]
    headroom: Literal["show", "stop"]
    concurrency: int | Literal["auto"]
    timeout_s: float
    rewarder_timeout_s: float
    answer_max_bytes: int
    library: str
    prompt_packs: str
    budget_usd: float | None
    budget_tokens: int | None
    budget_s: float | None
    limit: int | None
    seed: int
    task_id: str | None
    out: str | None
    executor: str
    sandbox: Literal["none", "bwrap"]
    sandbox_readable: str | None
    sandbox_writable: str | None
    sandbox_env: str | None
    sandbox_network: Literal["none", "loopback", "host"]
    sandbox_limits: str | None
    check_sandbox: Literal["auto", "bwrap", "none"]
    allow_paid: bool
    min_score: float
    baseline: str | None
    gate_margin: float
    gate_alarm: float
    gate_extend: int
    gate_min_mean: float | None
    gate_max_errors: int | None
    gate_max_cost_per_success_usd: float | None
    gate_sequential: bool
    gates: str | None
    contamination: Literal["fail", "warn"]
    gate_strict: bool
    otel: bool
    otel_content: bool
