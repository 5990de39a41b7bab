"""What is served as configuration of TensorZero's gateway: a variant for each version, shares as weights.

A template of the gateway is a program. Texts are literals in it, so that nothing in them is run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import write_atomic
from pytest_tfgrpo.core.wire.toml_text import toml_table, toml_text
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.deployment.serving import Serving

CONFIG = "tfgrpo.toml"
_TEMPLATE = re.compile(r"tfgrpo-v[0-9]+\.minijinja")
"""Names of the files of versions; nothing else in the folder is removed."""
_APPENDED = (
    "{%% set parts = [%s] %%}{%% if system_text %%}{{ system_text }}{%% endif %%}"
    "{%% for part in parts if not system_text or part not in system_text %%}"
    '{%% if system_text or not loop.first %%}{{ "\\n\\n" }}{%% endif %%}{{ part }}{%% endfor %%}'
)
"""Appends texts to the system text of the request; one that this has already is not added again."""


def gateway_files(
    serving: Serving, texts: Mapping[str, Sequence[str]], function: str, model: str
) -> dict[str, str]:
    """Return contents by name, the configuration last; `texts` are what each version adds.

    A version that adds nothing has no template: the system text of the request goes on as it is.
    """
    templates = {name: f"tfgrpo-{name}.minijinja" for name in serving.versions if texts[name]}
    place = f"functions.{toml_text(function)}"
    lines = [*toml_table("gateway", {"disable_pseudonymous_usage_analytics": True})]
    for name in serving.versions:
        variant: dict[str, Json] = {"type": "chat_completion", "model": model}
        if name in templates:
            variant["system_template"] = templates[name]
        lines += ["", *toml_table(f"{place}.variants.{name}", variant)]
    experiment = {"type": "static", "candidate_variants": _weights(serving)}
    lines += ["", *toml_table(f"{place}.experimentation", experiment)]
    files = {template: template_of(texts[name]) for name, template in templates.items()}
    return files | {CONFIG: "\n".join(lines) + "\n"}


def template_of(texts: Sequence[str]) -> str:
    """Return the template that appends texts to a system text."""
    return _APPENDED % ", ".join(map(_literal, texts))


def _literal(text: str) -> str:
    """Return a text as a literal of templates, without the characters that begin and end their tags."""
    whole = text.encode("utf-8", "replace").decode()  # half a surrogate pair has no literal
    return toml_text(whole).replace("{", "\\u007b").replace("}", "\\u007d")


def _weights(serving: Serving) -> dict[str, float]:
    ramp = serving.ramp
    if ramp is None:
        return {serving.live: 1.0}
    return {serving.live: round(1.0 - ramp.share, 4), ramp.version: round(ramp.share, 4)}


def write_gateway_files(folder: Path, files: Mapping[str, str]) -> bool:
    """Write what changed, each file whole or not at all, and the configuration after what it names.

    Files of versions that are no longer served are removed. Returns whether anything changed. Raises
    StoreError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        changed = [name for name, text in files.items() if _read(folder / name) != text.encode()]
        for name in changed:
            write_atomic(folder / name, [files[name].encode()])
        old = list(_old(folder, files))
        for path in old:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StoreError(f"cannot write the configuration of TensorZero into {folder}: {error}") from error
    return bool(changed or old)


def _read(path: Path) -> bytes | None:
    with suppress(FileNotFoundError):
        return path.read_bytes()
    return None


def _old(folder: Path, files: Mapping[str, str]) -> Iterator[Path]:
    for path in folder.iterdir():
        if _TEMPLATE.fullmatch(path.name) and path.name not in files:
            yield path
