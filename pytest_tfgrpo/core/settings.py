"""Settings: one table, one rule for names, guards that hold whenever a value is set (decision 20).

A setting ``x_y`` is the flag ``--tfgrpo-x-y``, the environment variable ``TFGRPO_X_Y`` and the ini key
``tfgrpo_x_y``; a flag beats the environment, which beats the ini file, which beats the default.
This module is imported by every pytest start: it must stay free of heavy imports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from pytest_tfgrpo.core.setting_parsers import (
    NoChoice,
    choice,
    listed_values,
    parse_actor,
    parse_bool,
    parse_executor,
    parse_task_id,
    parse_text,
    parse_text_or_none,
    real,
    whole,
    whole_or_auto,
)

if TYPE_CHECKING:
    from pytest_tfgrpo.core.errors import SettingError
    from pytest_tfgrpo.core.setting_values import SettingValues

# Plain classes: making a dataclass or a named tuple costs each start of pytest some tenths of a millisecond.


class Setting:
    """One row of the table of settings."""

    __slots__ = ("aliases", "default", "help", "ini_type", "name", "parse", "shapes")

    def __init__(
        self,
        name: str,
        shapes: str,
        parse: Callable[[Any], Any],
        default: Any,
        description: str,
        ini_type: str = "string",
        aliases: tuple[str, ...] = (),
    ) -> None:
        """`parse` returns the value or raises ValueError with a text that starts with ``must``.

        `shapes` lists what depends on the setting: ``prompts``, what a run asks, by its plan or by what it
        learned; ``answers``, the answer to one prompt, so a recording made with another value is refused;
        ``gate``, whether a run passes; ``none`` also where what is named has a stamp of its own (library).
        `aliases` are further environment variables, which the source document names.
        """
        self.name = name
        self.shapes = shapes.split()
        self.parse = parse
        self.default = default
        self.help = description
        self.ini_type = ini_type
        self.aliases = aliases

    @property
    def flag(self) -> str:
        """The command line flag."""
        return "--tfgrpo-" + self.name.replace("_", "-")

    @property
    def env(self) -> str:
        """The environment variable."""
        return "TFGRPO_" + self.name.upper()

    @property
    def ini(self) -> str:
        """The key in the ini file."""
        return "tfgrpo_" + self.name


# fmt: off
TABLE: tuple[Setting, ...] = (
    Setting("actor", "none", parse_actor, None,
            "actor that solves the scenarios: offline, openai:<model>, command:<argv>, "
            "python:<module>:<callable>, replay:<file>, reference, nothing; several, separated by commas or "
            "lines, run side by side"),
    Setting("domain_agents", "none", listed_values("domains"), None,
            "agents of a list that try a domain, by name, one domain a line: billing = small, large; all "
            "agents try other domains"),
    Setting("optimizer", "prompts", parse_text, "heuristic",
            "how rollouts become lessons: heuristic, llm, none"),
    Setting("teacher", "none", parse_text, None,
            "model that the optimizer llm calls, openai:<model>; default: the actor"),
    Setting("judge", "none", parse_text, None, "model that scores scenarios with a rubric, openai:<model>"),
    Setting("user", "none", parse_text, "script",
            "who plays the user of a conversation: script (it says its turns), openai:<model>"),
    Setting("judge_votes", "prompts", whole(1, 99), 3, "judge votes per rollout", "int"),
    Setting("judge_weight", "prompts", real(0, 1000), 0.0,
            "weight of the judge's score beside gt_score; 0 only reports it", "float"),
    Setting("models", "none", parse_text, None, "YAML file with endpoints and prices of language models"),
    Setting("max_tokens", "answers", whole(1), 4096,
            "maximum completion tokens per model call, with reasoning", "int"),
    Setting("max_steps", "answers", whole(1, 1000), 10, "maximum model calls per rollout with tools", "int"),
    Setting("tools", "answers", parse_text, None, "Python module that defines the tools models may call"),
    Setting("record", "none", parse_text, None,
            "file to record the run's answers in, for the actor replay:<file>"),
    Setting("command_output", "answers", choice("frames", "claude", "codex"), "frames",
            "what the command actor prints: frames, or the events of a coding agent (claude, codex)"),
    Setting("part_thoughts", "answers", parse_bool, False,
            "take thoughts, as <think>...</think>, from the beginning of each agent's answer; replies of "
            "openai:<model> never have them", "bool"),
    Setting("group_size", "prompts", whole(2), 2, "rollouts per scenario and epoch (G)", "int"),
    Setting("eval_rollouts", "prompts", whole(1), None,
            "rollouts per scenario in a sweep; default: 5 where the run learns, else 1", "int"),
    Setting("epochs", "prompts", whole(1), 3,
            "number of epochs; the last one evaluates (see eval_mode)", "int"),
    Setting("sample_size", "prompts", whole(1), 100,
            "train scenarios drawn per epoch, without replacement", "int"),
    Setting(
        "temperature_train", "prompts", real(0, 2), 0.7, "sampling temperature in training", "float",
        ("TFGRPO_TRAIN_TEMP",),
    ),
    Setting(
        "temperature_eval", "prompts", real(0, 2), 0.3, "sampling temperature in sweeps", "float",
        ("TFGRPO_EVAL_TEMP",),
    ),
    Setting("experience_max_words", "prompts", whole(1, 32), 32, "maximum words in a lesson", "int"),
    Setting("acceptance", "prompts", choice("strict", "safe", "off"), "safe",
            "lessons that stay after an epoch: those that are expected to help (safe), those shown to help "
            "(strict), or all (off)"),
    Setting("acceptance_margin", "prompts", real(0, 1), 0.02,
            "drop of the dev mean that safe tolerates", "float"),
    Setting("acceptance_rollouts", "prompts", whole(1), 2000,
            "most dev rollouts per epoch", "int"),
    Setting("dev_share", "prompts", real(0, 0.5), 0.2,
            "fraction of each train family to use as the dev split if no "
            "scenario has split: dev", "float"),
    Setting("lesson_dropout", "prompts", real(0, 0.9), 0.2,
            "probability that a training group runs without a given "
            "lesson, to measure the lesson's effect", "float"),
    Setting("retire_after", "prompts", whole(1), 200,
            "groups until a lesson without effect can be replaced", "int"),
    Setting("library_cap", "prompts", whole(1), 200, "maximum active lessons per domain", "int"),
    Setting("eval_mode", "prompts", choice("last_epoch", "separate"), "last_epoch",
            "last_epoch: epoch E evaluates; "
            "separate: all E epochs train, then a sweep follows"),
    Setting("baseline_sweep", "prompts", choice("concurrent", "early", "both", "off"), "concurrent",
            "when the eval split runs without new lessons: concurrent (pair by pair with the final sweep), "
            "early (before epoch 1), both (a quarter early, to measure drift), off"),
    Setting("headroom", "none", choice("show", "stop"), "show",
            "what to do once the first training groups show what a lesson can gain: show it, or stop the run "
            "if it could teach or show nothing"),
    Setting("concurrency", "none", whole_or_auto(1, 10_000), 64,
            "maximum rollouts in flight; auto: as many as the model's endpoint takes"),
    Setting("timeout_s", "prompts", real(0.001), 120.0,
            "seconds per rollout, unless its scenario says", "float"),
    Setting("rewarder_timeout_s", "none", real(0.001), 60.0,
            "seconds per rewarder and epoch", "float"),
    Setting("answer_max_bytes", "prompts", whole(1), 1_000_000,
            "maximum size; a larger answer fails", "int"),
    Setting("library", "none", parse_text, "none",
            "committed library file to start from; none starts without lessons"),
    Setting("prompt_packs", "none", parse_text, "prompt-packs",
            "folder of the prompt packs, relative to the root"),
    Setting("budget_usd", "none", real(0), None, "stop before spending more US dollars than this", "float"),
    Setting("budget_tokens", "none", whole(1), None, "stop before using more tokens than this", "int"),
    Setting("budget_s", "none", real(0.001), None, "stop after this many seconds", "float"),
    Setting("limit", "none", whole(1), None,
            "run at most this many eval scenarios, drawn by the seed, for a quick look; the gate is then not "
            "judged", "int"),
    Setting("seed", "prompts", whole(0), 0,
            "run seed; scenario draws and rollout seeds derive from it", "int"),
    Setting("task_id", "none", parse_task_id, None,
            "name of the folder under out; default: name of the root folder"),
    Setting("out", "none", parse_text, None,
            "output folder; default: out with --tfgrpo, otherwise nothing is written"),
    Setting("executor", "none", parse_executor, "local",
            "where the calls of agents are made: local, in this process; process:N, in N worker processes, "
            "by default as many as there are processors; ray:<host>:<port>, on the nodes of a Ray "
            "cluster, by default one that runs on this machine or is started there"),
    Setting("sandbox", "prompts", choice("none", "bwrap"), "none",
            "isolation of the command actor: none, bwrap"),
    Setting("sandbox_readable", "prompts", listed_values("paths"), None,
            "further files and folders that an agent in the sandbox can read, separated by commas"),
    Setting("sandbox_writable", "prompts", listed_values("paths"), None,
            "files and folders that an agent in the sandbox can also write to"),
    Setting("sandbox_env", "prompts", listed_values("names"), None,
            "names of environment variables that the sandbox passes on"),
    Setting("sandbox_network", "prompts", choice("none", "loopback", "host"), "none",
            "network of an agent in the sandbox: none, loopback (servers on this machine), host"),
    Setting("sandbox_limits", "prompts", listed_values("limits"), None,
            "limits in the sandbox: processes, memory, file_size; for example memory=2GB, file_size=100MB"),
    Setting("check_sandbox", "none", choice("auto", "bwrap", "none"), "auto",
            "isolation of checks: auto (bwrap for tests, none for command), bwrap, none"),
    Setting("allow_paid", "none", parse_bool, False,
            "let an actor that costs money run without --tfgrpo", "bool"),
    Setting("min_score", "gate", real(0, 1), 1.0,
            "mean score that an eval scenario without its own min_score needs in a plain run; "
            "where a gate judges the mean, those below are listed and do not fail", "float"),
    Setting("baseline", "gate", parse_text_or_none, None,
            "what the gate compares with: a stored baseline (a name or a .json file), or what the run asks "
            "too: an old library file, a folder of prompt packs, or no-lessons; none: nothing"),
    Setting("gate_margin", "gate", real(0, 1), 0.05,
            "drop of the eval mean that the gate tolerates", "float"),
    Setting("gate_alarm", "gate", real(0, 1), 0.15,
            "drop of the eval mean that the gate must exclude to be green; 1: none need be", "float"),
    Setting("gate_extend", "prompts gate", whole(0), 3,
            "rollouts of each eval scenario of a plain run with a baseline, unless eval_rollouts is set; "
            "with one, 2x, then 4x as many while the gate cannot see gate_alarm; 0: never more", "int"),
    Setting("gate_min_mean", "gate", real(0, 1), None, "lowest eval mean that passes", "float"),
    Setting("gate_max_errors", "gate", whole(0), None,
            "maximum errors in a final sweep that passes", "int"),
    Setting(
        "gate_max_cost_per_success_usd", "gate", real(0), None,
        "highest cost per solved eval rollout that passes", "float",
    ),
    Setting("gate_sequential", "prompts gate", parse_bool, False,
            "end the final sweep once the gate is decided", "bool"),
    Setting("gates", "gate", parse_text, None, "YAML file of named gates with their own rules"),
    Setting("contamination", "gate", choice("fail", "warn"), "fail",
            "what to do if splits share tasks, or prompts or lessons contain answers: fail, warn"),
    Setting("gate_strict", "gate", parse_bool, False, "fail an inconclusive gate", "bool"),
    Setting("otel", "none", parse_bool, False,
            "send OpenTelemetry spans; the OTEL_* variables say where to", "bool"),
    Setting("otel_content", "none", parse_bool, False,
            "put prompts, answers and tool arguments into the spans, without secrets", "bool"),
)
# fmt: on

BY_NAME: Mapping[str, Setting] = {s.name: s for s in TABLE}
HIDDEN = "sandbox_env"
"""The setting whose wrong value no message shows: it may be a key instead of a key's name."""
SWEEP_ROLLOUTS = 5
"""Of each scenario in the sweeps of a learning run, unless set."""
GROUP_FLAG_ENV = "FEATURE_TFGRPO_GROUP"


class Origin:
    """A configured value with its source."""

    __slots__ = ("source", "value")

    def __init__(self, value: Any, source: str) -> None:
        """`source` is for example ``flag --tfgrpo-seed`` or ``environment TFGRPO_SEED``."""
        self.value = value
        self.source = source


class Settings:
    """All settings of an invocation, parsed; not to be changed."""

    __slots__ = ("learning", "origins", "values")

    def __init__(self, learning: bool, values: SettingValues, origins: Mapping[str, str]) -> None:
        """`origins` has the source of each configured setting."""
        self.learning = learning
        self.values = values
        self.origins = origins

    def __getitem__(self, name: str) -> Any:
        """Return the value of the setting called `name`."""
        return self.values[name]  # type: ignore[literal-required]  # the type is for names in the source

    def with_values(self, **values: Any) -> Settings:
        """Return these settings with other values of some, already parsed."""
        return Settings(self.learning, cast("SettingValues", {**self.values, **values}), self.origins)

    @property
    def eval_rollouts(self) -> int:
        """Rollouts per scenario in a sweep: as set, else 5 when learning, else those of the first look."""
        if self["eval_rollouts"] is not None:
            return self.values["eval_rollouts"]
        if self.learning:
            return SWEEP_ROLLOUTS
        stored = self.values["baseline"] is not None and not self.values["gate_sequential"]
        return max(self.values["gate_extend"], 1) if stored else 1


def shaping(*what: str) -> tuple[str, ...]:
    """Return the names of the settings that shape `what`: ``prompts``, ``answers`` or ``gate``."""
    return tuple(setting.name for setting in TABLE if not set(what).isdisjoint(setting.shapes))


def sets_gate(values: SettingValues) -> bool:
    """Return whether a gate is asked for: a plain run has one where a gate setting without default is set."""
    return any(BY_NAME[name].default is None and values.get(name) is not None for name in shaping("gate"))


def _error(message: str) -> SettingError:
    from pytest_tfgrpo.core.errors import SettingError  # not needed by a start without a mistake

    return SettingError(message)


def parse(setting: Setting, origin: Origin) -> Any:
    """Return the parsed value; raises SettingError naming key, value and source."""
    try:
        return setting.parse(origin.value)
    except ValueError as error:
        hint = _hint(str(origin.value), error.names) if isinstance(error, NoChoice) else ""
        shown = "" if setting.name == HIDDEN else f", not {origin.value!r}"
        raise _error(f"{setting.name} {error}{shown} ({origin.source}){hint}") from None


def _hint(word: str, known: Iterable[str]) -> str:
    from pytest_tfgrpo.core.schema import nearest  # not needed by a start without a mistake

    return nearest(word, known)


def unknown_key(key: str, file: str) -> SettingError:
    """Return the error of an ini key that starts with ``tfgrpo_`` and is no setting."""
    hint = _hint(key.removeprefix("tfgrpo_"), BY_NAME).replace("'", "'tfgrpo_", 1)
    return _error(f"{file}: unknown ini key {key!r}{hint or '; remove it'}")


def resolve(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    ini: Mapping[str, Any],
    *,
    learning_flag: bool = False,
) -> Settings:
    """Return the settings that flags, environment and ini file amount to.

    `flags` and `ini` map setting names to raw values and hold only what was set. Every value set anywhere is
    checked, also one that a stronger source overrides. Raises SettingError.
    """

    def found(setting: Setting) -> list[Origin]:
        return [*_flag(setting, flags), *_environment(setting, environ), *_ini(setting, ini)]

    return _settings(found, learning=learning_flag or _group_feature(environ))


def _settings(found: Callable[[Setting], list[Origin]], *, learning: bool) -> Settings:
    """Return all settings; `found` gives the values that a setting was set to, the strongest first."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for setting in TABLE:
        given = found(setting)
        parsed = [parse(setting, origin) for origin in given]
        values[setting.name] = parsed[0] if parsed else setting.default
        if given:
            origins[setting.name] = given[0].source
    if values["eval_mode"] == "last_epoch" and values["epochs"] < 2:
        raise _error(
            f"epochs must be >= 2 with eval_mode=last_epoch, not {values['epochs']!r} "
            f"({origins.get('epochs', 'default')}); use eval_mode=separate to train in a single epoch"
        )
    settings = Settings(learning, cast("SettingValues", values), origins)
    if learning and settings["baseline_sweep"] == "both" and settings.eval_rollouts < 4:
        raise _error(
            f"baseline_sweep = 'both' asks a quarter of the {settings.eval_rollouts} rollouts early "
            f"({origins['baseline_sweep']}); set eval_rollouts to at least 4, or choose concurrent"
        )
    return settings


def from_arguments(arguments: Mapping[str, Any], *, learning: bool) -> Settings:
    """Return the settings that keyword arguments of a call amount to; None stands for the default.

    Nothing is read from the environment or an ini file. Raises SettingError, also on an unknown name.
    """
    for name in arguments:
        if name not in BY_NAME:
            raise _error(f"unknown setting {name!r}{_hint(name, BY_NAME)}")

    def found(setting: Setting) -> list[Origin]:
        value = arguments.get(setting.name)
        return [] if value is None else [Origin(value, f"argument {setting.name}")]

    return _settings(found, learning=learning)


def _flag(setting: Setting, flags: Mapping[str, Any]) -> list[Origin]:
    return [Origin(flags[setting.name], f"flag {setting.flag}")] if setting.name in flags else []


def _ini(setting: Setting, ini: Mapping[str, Any]) -> list[Origin]:
    return [Origin(ini[setting.name], f"ini key {setting.ini}")] if setting.name in ini else []


def _environment(setting: Setting, environ: Mapping[str, str]) -> list[Origin]:
    names = [name for name in (setting.env, *setting.aliases) if name in environ]
    found = [Origin(environ[name], f"environment {name}") for name in names]
    if len({parse(setting, origin) for origin in found}) > 1:
        pairs = " and ".join(f"{name}={environ[name]!r}" for name in names)
        raise _error(f"{pairs} contradict each other; unset one of them")
    return found


def _group_feature(environ: Mapping[str, str]) -> bool:
    if GROUP_FLAG_ENV not in environ:
        return False
    try:
        return parse_bool(environ[GROUP_FLAG_ENV])
    except ValueError as error:
        raise _error(f"{GROUP_FLAG_ENV} {error}, not {environ[GROUP_FLAG_ENV]!r} (environment)") from None


RESERVED_PREFIXES = ("TFGRPO_LIVE_RL_", "TFGRPO_LOOP_")
"""Environment variables that other parts of the project read."""


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the ``TFGRPO_*`` variables that no setting answers to, sorted."""
    known = {name for s in TABLE for name in (s.env, *s.aliases)}
    return sorted(
        name
        for name in environ
        if name.startswith("TFGRPO_") and name not in known and not name.startswith(RESERVED_PREFIXES)
    )
