"""The file ``loop.toml`` and the environment: what the feedback loop is configured to do, and why."""

from __future__ import annotations

import ssl
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import nearest, short
from pytest_tfgrpo.core.texts.text import line, table
from pytest_tfgrpo.core.wire.schema import Violation, violations
from pytest_tfgrpo.core.wire.toml_text import toml_problem
from pytest_tfgrpo.production.loop_setting import PREFIX, LoopSetting
from pytest_tfgrpo.production.settings import CONFIG_VARIABLE, LOOP_TABLE, LoopSettings, loop_settings

LOOP_FILE = "loop.toml"
DEFAULT = "default"
"""The origin of a value that nobody set."""
KEY_BYTES = 32
"""Of a key file that is made."""
MAX_BYTES = 1_000_000
_TLS_FILES = ("tls_ca_file", "tls_cert_file", "tls_key_file")
"""Options that are files of certificates, of which the option ``tls`` of `nats.connect` is made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoopConfig:
    """What a process is configured to do."""

    path: Path
    """The file, whether or not it exists; what is named relative to its folder."""
    settings: LoopSettings
    origins: Mapping[str, str]
    """``default``, a variable or the file, by section and key."""

    @property
    def bus_spec(self) -> str:
        """The bus for `open_bus`: the path of an embedded one is relative to the folder of the file."""
        kind, _, where = self.settings.bus.url.partition(":")
        return f"embedded:{self.path.parent / where}" if kind == "embedded" else self.settings.bus.url

    @property
    def bus_file(self) -> Path | None:
        """The file of an embedded bus; None where it is a server."""
        kind, _, where = self.bus_spec.partition(":")
        return Path(where) if kind == "embedded" else None

    @property
    def public_bus(self) -> str:
        """The bus as it may be shown, without user and password."""
        return ",".join(_public(server) for server in self.settings.bus.url.split(","))

    @property
    def view_path(self) -> Path:
        """The file of the view."""
        return self.path.parent / self.settings.view.path

    @property
    def key_path(self) -> Path:
        """The file of the key."""
        return self.path.parent / self.settings.privacy.key_file

    @property
    def project_path(self) -> Path | None:
        """The folder of the project that jobs run in; None where this process runs none."""
        named = self.settings.training.project
        return None if not named else self.path.parent / named

    @property
    def store(self) -> str:
        """The URL of the versions, or the path of their folder."""
        named = self.settings.training.store or self.settings.training.folder
        return named if "://" in named else str(self.path.parent / named)

    @property
    def flag_path(self) -> Path | None:
        """The file of flags; None where there is to be none."""
        named = self.settings.deployment.flag_file
        return self.path.parent / named if named else None

    @property
    def jobs_path(self) -> Path:
        """The folder of the jobs."""
        return self.path.parent / self.settings.training.folder

    def bus_options(self) -> dict[str, object]:
        """Return the options for `open_bus`; raises SettingError for certificates that cannot be read."""
        found: dict[str, object] = dict(self.settings.bus.options)
        files = {name: found.pop(name) for name in _TLS_FILES if name in found}
        if not files:
            return found
        authority, certificate, key = (
            self.path.parent / str(files[name]) if name in files else None for name in _TLS_FILES
        )
        try:
            context = ssl.create_default_context(cafile=authority)
            if certificate is not None:
                context.load_cert_chain(certificate, key)
        except (OSError, ValueError) as error:
            names = ", ".join(files)
            raise SettingError(f"{self.origins['bus.options']}: bus.options: {names}: {error}") from error
        return {**found, "tls": context}

    def key(self) -> bytes:
        """Return the key of the pseudonyms and placeholders; raises SettingError."""
        place = f"privacy.key_file ({self.origins['privacy.key_file']})"
        try:
            key = bytes.fromhex(read_plain(self.key_path, 10_000).decode("ascii"))
        except FileNotFoundError:
            raise SettingError(
                f"{place}: there is no key {self.key_path}; write one with `tfgrpo loop init`, and keep it"
            ) from None
        except (OSError, ValueError) as error:
            said = error.strerror if isinstance(error, OSError) else "it is not hexadecimal"
            raise SettingError(f"{place}: cannot read the key {self.key_path}: {said}") from None
        if len(key) < KEY_BYTES:
            raise SettingError(
                f"{place}: the key {self.key_path} has {len(key)} bytes; it needs {KEY_BYTES}, in hexadecimal"
            )
        return key


def load_loop_config(path: str | Path | None, environ: Mapping[str, str]) -> LoopConfig:
    """Return what the file at `path` and the variables amount to; a variable beats the file.

    Without a path, ``TFGRPO_LOOP_CONFIG`` names the file, else ``loop.toml`` in the current folder, which
    need not exist. Every value that is set is checked. Raises SettingError naming file or variable, and key.
    """
    named = path if path is not None else environ.get(CONFIG_VARIABLE)
    if named is not None and not str(named).strip():
        raise SettingError(f"{CONFIG_VARIABLE} is empty; name a file, or unset it")
    file = Path(LOOP_FILE if named is None else named)
    data = _read(file, must_exist=named is not None)
    _require_variables(environ)
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for name, row in LOOP_TABLE.items():
        given: list[tuple[Any, str]] = []
        if row.env in environ:
            given.append((environ[row.env], f"environment {row.env}"))
        if row.key in data.get(row.section, {}):
            given.append((data[row.section][row.key], str(file)))
        parsed = [_parsed(row, value, origin) for value, origin in given]
        values[name] = parsed[0] if parsed else row.default
        origins[name] = given[0][1] if given else DEFAULT
    return LoopConfig(path=file, settings=loop_settings(values), origins=origins)


def _read(file: Path, *, must_exist: bool) -> dict[str, Any]:
    """Return the content of a file that the schema accepts."""
    try:
        data = tomllib.loads(read_plain(file, MAX_BYTES).decode())
    except FileNotFoundError as error:
        if must_exist:
            raise SettingError(f"{file} does not exist; write one with `tfgrpo loop init`") from error
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise SettingError(f"cannot read {file}: {toml_problem(error)}") from error
    found = violations("loop-file", data)
    if found:
        raise SettingError("\n".join(f"{file}: {_described(one)}" for one in found))
    return data


def _described(violation: Violation) -> str:
    name = ".".join(map(str, violation.path))
    row = LOOP_TABLE.get(".".join(map(str, violation.path[:2])))
    message = "does not fit; " + row.help if row is not None and row.hidden else violation.message
    return f"{name or 'file'}: {message}"


def _require_variables(environ: Mapping[str, str]) -> None:
    known = {row.env for row in LOOP_TABLE.values()} | {CONFIG_VARIABLE}
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            raise SettingError(f"unknown environment variable {name}{nearest(name, known) or '; unset it'}")


def _parsed(row: LoopSetting, value: Any, origin: str) -> Any:
    try:
        return row.parse(value)
    except ValueError as error:
        shown = "" if row.hidden else f", not {short(value)}"
        raise SettingError(f"{origin}: {row.name} {error}{shown}") from None


def config_lines(config: LoopConfig) -> list[str]:
    """Return a line for each setting: name, value and origin; what may be a secret is left out."""
    rows = [
        [line(name, 60), line(value, 200), line(config.origins[row.name], 60)]
        for row in LOOP_TABLE.values()
        for name, value in _shown(row, config)
    ]
    return table(["setting", "value", "from"], rows, left=3)


def _shown(row: LoopSetting, config: LoopConfig) -> list[tuple[str, str]]:
    """Return names and values to show: one, or those of a table."""
    value = row.of(config.settings)
    if isinstance(value, tuple):
        value = ", ".join(value) or None
    if value is None or value == {}:
        return [(row.name, "none")]
    if isinstance(value, Mapping):
        return [(f"{row.name}.{key}", "(set)" if row.hidden else _spelled(one)) for key, one in value.items()]
    if row.name == "bus.url":
        return [(row.name, config.public_bus)]
    if row.hidden:
        return [(row.name, "(set)")]
    return [(row.name, _spelled(value))]


def _spelled(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _public(url: str) -> str:
    """Return a URL without user and password."""
    before, at, after = url.rpartition("@")
    return f"{before.partition('//')[0]}//...@{after}" if at and not url.startswith("embedded:") else url
