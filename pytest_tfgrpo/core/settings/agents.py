"""Settings of who takes part in a run, and of how they are called."""

from __future__ import annotations

from typing import Literal

from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import (
    choice,
    listed_values,
    parse_actor,
    parse_bool,
    parse_text,
    real,
    whole,
)

# fmt: off
ACTOR = Setting("actor", "none", parse_actor, None,
    "actor that solves the scenarios: offline, openai:<model>, command:<argv>, python:<module>:<callable>, "
    "replay:<file>, reference, nothing; several, separated by commas or lines, run side by side")
DOMAIN_AGENTS = Setting("domain_agents", "none", listed_values("domains"), None,
    "which agents of the list run a domain, one domain per line: billing = small, large; left out: all")
OPTIMIZER = Setting("optimizer", "prompts", parse_text, "heuristic",
    "how rollouts become lessons: heuristic, llm, none")
TEACHER = Setting("teacher", "none", parse_text, None,
    "model that the optimizer llm calls, openai:<model>; default: the actor")
JUDGE = Setting("judge", "none", parse_text, None,
    "model that scores scenarios with a rubric, openai:<model>")
USER = Setting("user", "none", parse_text, "script",
    "what plays the user in a conversation: script (says the turns of the scenario), openai:<model>")
JUDGE_VOTES = Setting("judge_votes", "prompts", whole(1, 99), 3, "judge votes per rollout", "int")
JUDGE_WEIGHT = Setting("judge_weight", "prompts", real(0, 1000), 0.0,
    "weight of the judge's score beside gt_score; 0 only reports it", "float")
MODELS = Setting("models", "none", parse_text, None, "YAML file with endpoints and prices of language models")
MAX_TOKENS = Setting("max_tokens", "answers", whole(1), 4096,
    "maximum completion tokens per model call, with reasoning", "int")
MAX_STEPS = Setting("max_steps", "answers", whole(1, 1000), 10,
    "maximum model calls per rollout with tools", "int")
TOOLS = Setting("tools", "answers", parse_text, None,
    "tools that models may call, a line each: a Python module, mcp:<command> or mcp:<url>; with mcp-shared: "
    "one server for all rollouts")
RECORD = Setting("record", "none", parse_text, None,
    "file to record the run's answers in, for the actor replay:<file>")
COMMAND_OUTPUT: Setting[Literal["frames", "claude", "codex"]] = Setting(
    "command_output", "answers", choice("frames", "claude", "codex"), "frames",
    "what the command actor prints: frames, or a coding agent's events")
PART_THOUGHTS = Setting("part_thoughts", "answers", parse_bool, False,
    "remove thoughts such as <think>...</think> from the start of each agent's answer; answers of "
    "openai:<model> never contain them", "bool")
