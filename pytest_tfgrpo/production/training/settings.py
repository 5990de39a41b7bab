"""The section ``[training]`` of ``loop.toml``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from pytest_tfgrpo.core.keys.list_values import listed
from pytest_tfgrpo.core.keys.setting_parsers import parse_text, real, whole
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.production.loop_setting import LoopSetting, parse_folder, parse_words

TRIGGERS = ("degradation", "negative_feedback", "threshold", "daily")
"""What requests training by itself; of several that are due the first does."""
CHECKPOINT = "{checkpoint}"
"""Stands for a checkpoint in arguments."""
_DOMAIN = re.compile(r"(?!tfgrpo\.)[A-Za-z0-9._-]{1,64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSettings:
    """The section ``[training]``."""

    project: str
    args: tuple[str, ...]
    command: tuple[str, ...]
    checkpoint_args: tuple[str, ...]
    folder: str
    timeout_h: float
    budget_usd_per_job: float
    budget_usd_per_day: float
    triggers: tuple[str, ...]
    threshold: int
    domains: Mapping[str, str]
    """Of the suite, by agent or by domain of trajectories."""
    safety: tuple[str, ...]
    store: str


def parse_checkpoint_args(value: Any) -> tuple[str, ...]:
    """Return arguments of pytest, of which one at least has the place of a checkpoint."""
    found = parse_words(value)
    if found and not any(CHECKPOINT in one for one in found):
        raise ValueError(f"must have {CHECKPOINT} in one of them, such as --tfgrpo-actor=openai:{CHECKPOINT}")
    return found


def parse_safety(value: Any) -> tuple[str, ...]:
    """Return names of safety suites and folders, from a list or a text; ``none`` are none."""
    found = listed(value) if isinstance(value, str) else tuple(dict.fromkeys(map(str, value)))
    if found == ("none",):
        return ()
    if isinstance(value, str) and not found:
        raise ValueError("must be packaged, names of suites, folders, or none")
    return tuple(found)


def parse_triggers(value: Any) -> tuple[str, ...]:
    """Return names of triggers, from a list or a text such as ``threshold, daily``; ``none`` are none."""
    found = listed(value) if isinstance(value, str) else tuple(dict.fromkeys(value))
    if found == ("none",):
        return ()
    if (isinstance(value, str) and not found) or not set(found) <= set(TRIGGERS):
        raise ValueError(f"must be some of {', '.join(TRIGGERS)}, or none")
    return tuple(found)


def parse_domains(value: Any) -> Mapping[str, str]:
    """Return domains of a suite by agent or domain, from a table or a text such as ``bot=orders``."""
    if isinstance(value, str):
        pairs = [[part.strip() for part in entry.rpartition("=")] for entry in listed(value)]
        value = {name: domain for name, _, domain in pairs}
        if not value or len(value) < len(pairs):
            raise ValueError("must be domains such as order helper=orders, general=shop, each name once")
    if not all(name and _DOMAIN.fullmatch(domain) for name, domain in value.items()):
        raise ValueError("must be domains of letters, digits and ._- such as order helper=orders")
    return MappingProxyType(dict(value))


# fmt: off
TRAINING_ROWS = (
    LoopSetting(section="training", key="project", parse=parse_folder, default="",
                help="folder of the project that training jobs run in; without one this service runs none"),
    LoopSetting(section="training", key="args", parse=parse_words, default=(),
                help="further arguments of pytest in these jobs"),
    LoopSetting(section="training", key="command", parse=parse_words, default=(),
                help="external trainer of ppo, dpo, rloo, grpo and reinforce; it gets a request's path"),
    LoopSetting(section="training", key="checkpoint_args", parse=parse_checkpoint_args, default=(),
                help="arguments of pytest that run the trainer's result, with {checkpoint} in its place"),
    LoopSetting(section="training", key="folder", parse=parse_text, default="loop-jobs",
                help="folder of the jobs: evidence, output and runs"),
    LoopSetting(section="training", key="timeout_h", parse=real(0.001, 8760), default=24.0,
                help="hours after which a job fails with TIMEOUT"),
    LoopSetting(section="training", key="budget_usd_per_job", parse=real(0), default=0.0,
                help="US dollars that a job may spend; 0: none, so an agent that costs money is refused"),
    LoopSetting(section="training", key="budget_usd_per_day", parse=real(0), default=0.0,
                help="US dollars that jobs may spend from 00:00 to 24:00 UTC; 0: as above"),
    LoopSetting(section="training", key="triggers", parse=parse_triggers, default=TRIGGERS,
                help="what asks for training by itself; daily does at 02:00 UTC"),
    LoopSetting(section="training", key="threshold", parse=whole(1), default=5000,
                help="new trajectories since the last job after which the trigger threshold asks for one"),
    LoopSetting(section="training", key="domains", parse=parse_domains, default=MappingProxyType({}),
                help="domains of your suite by agent, or else by a trajectory's domain; by default that"),
    LoopSetting(section="training", key="safety", parse=parse_safety, default=("packaged",),
                help="safety suites of a version: packaged, names of packaged ones, folders of the project"),
    LoopSetting(section="training", key="store", parse=parse_folder, default="",
                help="folder or fsspec URL (extra buckets) of versions and logs; empty: the folder of jobs"),
)
# fmt: on
