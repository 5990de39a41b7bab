"""Settings of the feedback loop: ``TFGRPO_LOOP_<SECTION>_<KEY>`` before ``[section] key`` of ``loop.toml``.

They are a table of their own, apart from that of pytest (decision 22, amended).
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from pytest_tfgrpo.core.keys.list_values import listed
from pytest_tfgrpo.core.keys.setting_parsers import choice, parse_bool, parse_text, real, whole
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.rewards.rewards import WEIGHTS
from pytest_tfgrpo.production.service.limits import SHORTEST_TOKEN, is_token

PREFIX = "TFGRPO_LOOP_"
CONFIG_VARIABLE = PREFIX + "CONFIG"
"""Names the file."""
TRIGGERS = ("degradation", "negative_feedback", "threshold", "daily")
"""What requests training by itself; of several that are due the first does."""
_ATTRIBUTE = re.compile(r"(?=.{3,100}\Z)[A-Za-z][\w-]*(?:\.[A-Za-z0-9_][\w-]*)*", re.ASCII)
_MOST_ATTRIBUTES = 100
_DOMAIN = re.compile(r"(?!tfgrpo\.)[A-Za-z0-9._-]{1,64}")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, kw_only=True, slots=True)
class AssemblerSettings:
    """The section ``[assembler]``."""

    idle_s: float
    settle_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class EvaluatorSettings:
    """The section ``[evaluator]``."""

    lease_s: float
    feedback_wait_h: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSettings:
    """The section ``[training]``."""

    project: str
    args: tuple[str, ...]
    command: tuple[str, ...]
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


RECORDS: Mapping[str, Callable[..., object]] = {
    "assembler": AssemblerSettings,
    "evaluator": EvaluatorSettings,
    "training": TrainingSettings,
}
"""Sections whose settings are a record of their own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopSettings:
    """The settings of a process; a row of `LOOP_TABLE` says what each one does."""

    bus_url: str
    """Public nowhere: it may hold a password."""
    bus_options: Mapping[str, Json]
    service_host: str
    service_port: int
    service_token: str | None
    service_max_body_mb: int
    privacy_key_file: str
    privacy_ip_addresses: bool
    privacy_user_attributes: tuple[str, ...]
    """Names under which users stand, beside those that everybody knows."""
    rewards_weights: Mapping[str, float]
    """By component; every component that is computed here has one."""
    assembler: AssemblerSettings
    evaluator: EvaluatorSettings
    training: TrainingSettings
    deployment_approval: str
    view_path: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopSetting:
    """One row of the table of settings."""

    section: str
    key: str
    parse: Callable[[Any], Any]
    """Returns the value, or raises ValueError with a text that starts with ``must``."""
    default: Any
    help: str
    hidden: bool = False
    """Whether its value is a secret or may hold one, and is shown nowhere."""

    @property
    def name(self) -> str:
        """The section and the key."""
        return f"{self.section}.{self.key}"

    @property
    def field(self) -> str:
        """The field of `LoopSettings`, or its name as one where the section is a field."""
        return f"{self.section}_{self.key}"

    def of(self, settings: LoopSettings) -> Any:
        """Return the value in `settings`."""
        if self.section in RECORDS:
            return getattr(getattr(settings, self.section), self.key)
        return getattr(settings, self.field)

    @property
    def env(self) -> str:
        """The environment variable."""
        return PREFIX + self.field.upper()


def loop_settings(values: Mapping[str, Any]) -> LoopSettings:
    """Return the settings with values by the names of `LOOP_TABLE`."""
    rows = LOOP_TABLE.values()
    fields = {row.field: values[row.name] for row in rows if row.section not in RECORDS}
    for section, record in RECORDS.items():
        fields[section] = record(**{row.key: values[row.name] for row in rows if row.section == section})
    return LoopSettings(**fields)


def parse_bus(value: Any) -> str:
    """Return the URL of a bus."""
    url = parse_text(value)
    kind, _, where = url.partition(":")
    if kind not in ("embedded", "nats") or not where:
        raise ValueError("must be embedded:<path> or nats:<url>")
    return url


def parse_token(value: Any) -> str:
    """Return a bearer token."""
    token = parse_text(value)
    if not is_token(token):
        raise ValueError(f"must be {SHORTEST_TOKEN} or more letters, digits or ._~+/=-")
    return token


def parse_options(value: Any) -> Mapping[str, Json]:
    """Return options of `nats.connect`, from a table or the text of a JSON object."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("must be a JSON object") from None
    fits = isinstance(value, dict) and all(isinstance(one, str | int | float) for one in value.values())
    if not fits:
        raise ValueError("must be names with texts, numbers or truth values")
    return MappingProxyType(value)


def parse_attributes(value: Any) -> tuple[str, ...]:
    """Return names of attributes, from a list or a text such as ``customer.id, tenant.member``."""
    found = listed(value) if isinstance(value, str) else tuple(dict.fromkeys(value))
    blank = isinstance(value, str) and not found
    if blank or len(found) > _MOST_ATTRIBUTES or not all(map(_ATTRIBUTE.fullmatch, found)):
        raise ValueError(
            f"must be up to {_MOST_ATTRIBUTES} names such as customer.id, of 3 characters or more"
        )
    return found


def parse_folder(value: Any) -> str:
    """Return the path of a folder; an empty text names none."""
    text = str(value)
    if text and not text.strip():
        raise ValueError("must be a folder, or empty")
    return text


def parse_words(value: Any) -> tuple[str, ...]:
    """Return arguments of a program, from a list or a text as a shell reads it."""
    try:
        found = tuple(shlex.split(value) if isinstance(value, str) else map(str, value))
    except ValueError as error:
        raise ValueError(f"must be arguments as a shell reads them: {error}") from None
    if isinstance(value, str) and value and not found:
        raise ValueError("must be arguments, or empty")
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


def parse_weights(value: Any) -> Mapping[str, float]:
    """Return the weights of all components, from a table or a text such as ``efficiency=0.3, style=0.1``."""
    if isinstance(value, str):
        pairs = [[part.strip() for part in entry.partition("=")] for entry in listed(value)]
        value = {name: weight for name, _, weight in pairs}
        if not value or len(value) < len(pairs):
            raise ValueError("must be weights such as efficiency=0.3, style=0.1, each once")
    found = dict(WEIGHTS)
    for name, weight in value.items():
        if _NAME.fullmatch(name) is None:
            raise ValueError(
                "must name components in lower case, digits and _, such as efficiency=0.3, style=0.1"
            )
        found[name] = _weight(name, weight)
    if not any(found.values()):
        raise ValueError("must leave a weight above 0")
    return MappingProxyType(found)


def _weight(name: str, value: Any) -> float:
    try:
        weight = float(value)
    except (TypeError, ValueError, OverflowError):
        weight = math.nan
    if isinstance(value, bool) or not 0.0 <= weight <= 1.0:
        raise ValueError(f"must be weights from 0 to 1 such as efficiency=0.3, style=0.1; {name} has none")
    return weight


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
LOOP_TABLE: Mapping[str, LoopSetting] = {row.name: row for row in (
    LoopSetting(section="bus", key="url", parse=parse_bus, default="embedded:loop-bus.db", hidden=True,
                help="where events are kept: embedded:<path>, or nats:<url> of a NATS JetStream server"),
    LoopSetting(section="bus", key="options", parse=parse_options, default=MappingProxyType({}), hidden=True,
                help="options of nats.connect; tls_ca_file, tls_cert_file and tls_key_file make its tls"),
    LoopSetting(section="service", key="host", parse=parse_text, default="127.0.0.1",
                help="address to listen at; any but a loopback address needs a token"),
    LoopSetting(section="service", key="port", parse=whole(0, 65535), default=4318,
                help="port to listen at; 4318 is that of OTLP over HTTP, 0 any that is free"),
    LoopSetting(section="service", key="token", parse=parse_token, default=None, hidden=True,
                help="bearer token of every request but GET /healthz and /openapi.json"),
    LoopSetting(section="service", key="max_body_mb", parse=whole(1, 1000), default=16,
                help="largest body of a request, once unpacked"),
    LoopSetting(section="privacy", key="key_file", parse=parse_text, default="loop.key",
                help="key of the pseudonyms and placeholders; whoever has it can test a guess against them"),
    LoopSetting(section="privacy", key="ip_addresses", parse=parse_bool, default=False,
                help="take out IP addresses too"),
    LoopSetting(section="privacy", key="user_attributes", parse=parse_attributes, default=(),
                help="further attributes that name a user, such as customer.id, also in JSON"),
    LoopSetting(section="rewards", key="weights", parse=parse_weights, default=WEIGHTS,
                help="weights from 0 to 1 by component; one that is not named keeps its default"),
    LoopSetting(section="assembler", key="idle_s", parse=real(0.1, 86400), default=60.0,
                help="seconds without a span after which a trace whose root is missing is complete"),
    LoopSetting(section="assembler", key="settle_s", parse=real(0, 3600), default=10.0,
                help="seconds without a span after which any trace is: exporters send every 5 s each"),
    LoopSetting(section="evaluator", key="lease_s", parse=real(1, 3600), default=15.0,
                help="seconds after which another process takes over from one that is gone"),
    LoopSetting(section="evaluator", key="feedback_wait_h", parse=real(0, 720), default=24.0,
                help="hours that feedback waits for its trajectory"),
    LoopSetting(section="training", key="project", parse=parse_folder, default="",
                help="folder of the project that training jobs run in; without one this service runs none"),
    LoopSetting(section="training", key="args", parse=parse_words, default=(),
                help="further arguments of pytest in these jobs"),
    LoopSetting(section="training", key="command", parse=parse_words, default=(),
                help="external trainer of ppo, dpo, rloo, grpo and reinforce; it gets a request's path"),
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
    LoopSetting(section="deployment", key="approval", parse=choice("manual", "automatic"), default="manual",
                help="who lets a version meet users: a person, or its validation where that is conclusive"),
    LoopSetting(section="view", key="path", parse=parse_text, default="loop-view.db",
                help="SQLite file of what the reports read; it can be deleted at any time"),
)}
"""By section and key."""
# fmt: on
