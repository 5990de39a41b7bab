"""Settings of the epochs, and of the lessons that they make."""

from __future__ import annotations

from typing import Literal

from pytest_tfgrpo.core.keys.setting import Setting
from pytest_tfgrpo.core.keys.setting_parsers import choice, parse_bool, parse_text_or_none, real, whole

# fmt: off
GROUP_SIZE = Setting("group_size", "prompts", whole(2), 2, "rollouts per scenario and epoch (G)", "int")
EVAL_ROLLOUTS = Setting("eval_rollouts", "prompts", whole(1), None,
    "rollouts per scenario in a sweep; default: 5 where the run learns, gate_extend where a plain run has a "
    "baseline, else 1", "int")
EPOCHS = Setting("epochs", "prompts", whole(1), 3,
    "number of epochs; the last one evaluates (see eval_mode)", "int")
SAMPLE_SIZE = Setting("sample_size", "prompts", whole(1), 100,
    "train scenarios drawn per epoch, without replacement", "int")
TEMPERATURE_TRAIN = Setting("temperature_train", "prompts", real(0, 2), 0.7,
    "sampling temperature in training", "float", ("TFGRPO_TRAIN_TEMP",))
TEMPERATURE_EVAL = Setting("temperature_eval", "prompts", real(0, 2), 0.3,
    "sampling temperature in sweeps", "float", ("TFGRPO_EVAL_TEMP",))
EXPERIENCE_MAX_WORDS = Setting("experience_max_words", "prompts", whole(1, 32), 32,
    "maximum words in a lesson", "int")
ACCEPTANCE: Setting[Literal["strict", "safe", "off"]] = Setting(
    "acceptance", "prompts", choice("strict", "safe", "off"), "safe",
    "lessons that stay after an epoch: those expected to help (safe), shown to help (strict), or all (off)")
ACCEPTANCE_MARGIN = Setting("acceptance_margin", "prompts", real(0, 1), 0.02,
    "drop of the dev mean that safe tolerates", "float")
ACCEPTANCE_ROLLOUTS = Setting("acceptance_rollouts", "prompts", whole(1), 2000,
    "most dev rollouts per epoch", "int")
DEV_SHARE = Setting("dev_share", "prompts", real(0, 0.5), 0.2,
    "share of each train family that is the dev split if no scenario has split: dev", "float")
LESSON_DROPOUT = Setting("lesson_dropout", "prompts", real(0, 0.9), 0.2,
    "probability that a training group runs without a given lesson", "float")
RETIRE_AFTER = Setting("retire_after", "prompts", whole(1), 200,
    "groups until a lesson without effect can be replaced", "int")
LIBRARY_CAP = Setting("library_cap", "prompts", whole(1), 200, "maximum active lessons per domain", "int")
EVAL_MODE: Setting[Literal["last_epoch", "separate"]] = Setting(
    "eval_mode", "prompts", choice("last_epoch", "separate"), "last_epoch",
    "last_epoch: epoch E evaluates; separate: all E epochs train, then a sweep follows")
BASELINE_SWEEP: Setting[Literal["concurrent", "early", "both", "off"]] = Setting(
    "baseline_sweep", "prompts", choice("concurrent", "early", "both", "off"), "concurrent",
    "when the eval split runs without new lessons: concurrent (pair by pair with the final sweep), early "
    "(before epoch 1), both (a quarter early, to measure drift), off")
PLACEBO_SWEEP = Setting("placebo_sweep", "prompts", parse_bool, False,
    "also run the eval split with lessons of other domains or families, twice for each rollout of the final "
    "sweep; a gain is claimed only if it is one over these too", "bool")
EVIDENCE = Setting("evidence", "none", parse_text_or_none, None,
    "file of attempts with rewards, from which epoch 1 learns instead of running the actor")
UNTESTED: Setting[Literal["keep", "hold"]] = Setting("untested", "none", choice("keep", "hold"), "keep",
    "lessons of a run that no prompt of the dev or eval split carried: keep, or hold them back from "
    "`library promote`")
HEADROOM: Setting[Literal["show", "stop"]] = Setting("headroom", "none", choice("show", "stop"), "show",
    "show what a lesson can gain, or stop a run that could not learn or show a gain")
