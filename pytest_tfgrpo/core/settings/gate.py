"""Settings of what passes."""

from __future__ import annotations

from typing import Literal

from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import (
    choice,
    parse_bool,
    parse_text,
    parse_text_or_none,
    real,
    whole,
)

# fmt: off
MIN_SCORE = Setting("min_score", "gate", real(0, 1), 1.0,
    "mean score that an eval scenario without its own needs in a plain run; if a gate checks the mean, "
    "scenarios below do not fail", "float")
BASELINE = Setting("baseline", "gate", parse_text_or_none, None,
    "what the gate compares with: a stored baseline (name or .json file), an old library file, a folder of "
    "prompt packs, no-lessons, placebo, or none")
GATE_MARGIN = Setting("gate_margin", "gate", real(0, 1), 0.05,
    "drop of the eval mean that the gate tolerates", "float")
GATE_ALARM = Setting("gate_alarm", "gate", real(0, 1), 0.15,
    "drop of the eval mean that the gate must rule out to pass; 1: no drop", "float")
GATE_EXTEND = Setting("gate_extend", "prompts gate", whole(0), 3,
    "rollouts per eval scenario of a plain run with a baseline; while the gate cannot see gate_alarm, 2x, "
    "then 4x as many; 0: never more", "int")
GATE_MIN_MEAN = Setting("gate_min_mean", "gate", real(0, 1), None, "lowest eval mean that passes", "float")
GATE_MAX_ERRORS = Setting("gate_max_errors", "gate", whole(0), None,
    "maximum errors in a final sweep that passes", "int")
GATE_MAX_COST_PER_SUCCESS_USD = Setting("gate_max_cost_per_success_usd", "gate", real(0), None,
    "highest cost per solved eval rollout that passes", "float")
GATE_SEQUENTIAL = Setting("gate_sequential", "prompts gate", parse_bool, False,
    "end the final sweep once the gate is decided", "bool")
GATES = Setting("gates", "gate", parse_text, None, "YAML file of named gates with their own rules")
CONTAMINATION: Setting[Literal["fail", "warn"]] = Setting(
    "contamination", "gate", choice("fail", "warn"), "fail",
    "fail or warn if splits share tasks, or prompts or lessons contain answers")
GATE_STRICT = Setting("gate_strict", "gate", parse_bool, False, "fail an inconclusive gate", "bool")
