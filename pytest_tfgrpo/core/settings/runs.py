"""Settings of one run: its limits, its files, its seed, and where its calls are made."""

from __future__ import annotations

from typing import Literal

from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import (
    parse_executor,
    parse_task_id,
    parse_text,
    real,
    whole,
    whole_or_auto,
)

# fmt: off
CONCURRENCY: Setting[int | Literal["auto"]] = Setting("concurrency", "none", whole_or_auto(1, 10_000), 64,
    "maximum rollouts in flight; auto: as many as the model's endpoint takes")
TIMEOUT_S = Setting("timeout_s", "prompts", real(0.001), 120.0,
    "seconds per rollout, unless its scenario sets timeout_s", "float")
REWARDER_TIMEOUT_S = Setting("rewarder_timeout_s", "none", real(0.001), 60.0,
    "seconds per rewarder and epoch", "float")
ANSWER_MAX_BYTES = Setting("answer_max_bytes", "prompts", whole(1), 1_000_000,
    "maximum size of an answer; a larger one fails", "int")
LIBRARY = Setting("library", "none", parse_text, "none",
    "committed library file to start from; none starts without lessons")
PATTERNS = Setting("patterns", "none", parse_text, "none",
    "folder of patterns, such as .agent/patterns: its active ones join the library; none reads none")
PROMPT_PACKS = Setting("prompt_packs", "none", parse_text, "prompt-packs",
    "folder of the prompt packs, relative to the root")
BUDGET_USD = Setting("budget_usd", "none", real(0), None,
    "stop before spending more US dollars than this; 0 refuses agents and models that cost money", "float")
BUDGET_TOKENS = Setting("budget_tokens", "none", whole(1), None,
    "stop before using more tokens than this", "int")
BUDGET_S = Setting("budget_s", "none", real(0.001), None, "stop after this many seconds", "float")
LIMIT = Setting("limit", "none", whole(1), None,
    "run at most this many eval scenarios, for a quick look without the gate", "int")
SEED = Setting("seed", "prompts", whole(0), 0,
    "run seed; scenario draws and rollout seeds derive from it", "int")
TASK_ID = Setting("task_id", "none", parse_task_id, None,
    "name of the folder under out; default: name of the root folder")
OUT = Setting("out", "none", parse_text, None,
    "output folder; default: out with --tfgrpo, otherwise nothing is written")
EXECUTOR = Setting("executor", "none", parse_executor, "local",
    "where agents run: in this process, in N worker processes (default: one per processor), or on a Ray "
    "cluster (default: the one of this machine)")
