"""The check on a file that the agent leaves in the workspace."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.stamp import stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.paths import check_name, confined, read_untrusted
from pytest_tfgrpo.scoring.checks.patterns import check_pattern, reason_against
from pytest_tfgrpo.scoring.checks.protocol import (
    BadParam,
    CheckContext,
    CheckKind,
    Undecided,
    builtin_params,
    verdict,
)

MAX_BYTES = 10_000_000
SHOWN_GOLDEN = 100_000
"""A golden text up to this size travels with the check, to say which line differs."""
MAX_ANSWERS = 1000


def _text(data: bytes) -> str | None:
    """Return UTF-8 text with one kind of line end; None when `data` is something else."""
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        return None


def _prepare(params: Mapping[str, Json], folder: Path) -> Mapping[str, Json]:
    """Complete the parameters with the golden file's stamp and, when it is a short text, with the text."""
    try:
        check_name(params["path"])
    except ValueError as error:
        raise BadParam("path", str(error)) from None
    if "pattern" in params:
        return check_pattern(params, folder)
    if "golden" not in params:
        return params
    try:
        data = confined(folder, params["golden"], MAX_BYTES).read_bytes()
    except (ValueError, OSError) as error:
        raise BadParam("golden", str(error)) from None
    text = _text(data) if len(data) <= SHOWN_GOLDEN else None
    stamp = stamp_bytes(data if text is None else text.encode())
    return {**params, "golden_sha256": stamp} | ({} if text is None else {"golden_text": text})


def _file(check: Check, context: CheckContext) -> CheckResult:
    name = check.params["path"]
    try:
        data = read_untrusted(context.workspace.path, name, MAX_BYTES)
    except FileNotFoundError:
        return verdict(check, f"expected a file {name!r} in the workspace, there is none")
    except ValueError as error:
        raise Undecided(str(error)) from None
    return verdict(check, _reason(check.params, data))


def _reason(params: Mapping[str, Json], data: bytes) -> str | None:
    """Return what is wrong with a file; raises Undecided."""
    text = _text(data)
    if "golden" in params and (text is None or "golden_text" not in params):
        same = stamp_bytes(data) == params["golden_sha256"]
        return None if same else f"{params['path']!r} differs from {params['golden']!r}"
    if text is None:
        raise Undecided(f"{params['path']!r} is not UTF-8 text")
    if "golden" in params:
        return _first_difference(params, text)
    if "pattern" in params:
        found = reason_against(params["pattern"], text)
        return f"{params['path']!r}: {found}" if found else None
    wanted = params["contains"]
    return None if wanted in text else f"expected {short(wanted)} in {params['path']!r}, got {short(text)}"


def _first_difference(params: Mapping[str, Json], text: str) -> str | None:
    if text == params["golden_text"]:
        return None
    wanted, got = params["golden_text"].split("\n"), text.split("\n")
    for number, (w, g) in enumerate(zip(wanted, got, strict=False), 1):
        if w != g:
            return f"{params['path']!r} line {number}: expected {short(w)}, got {short(g)}"
    return f"{params['path']!r}: expected {len(wanted)} lines, got {len(got)}"


def _answers(check: Check) -> tuple[str, ...]:
    if "contains" in check.params:
        return (check.params["contains"],)
    lines = (line.strip() for line in check.params.get("golden_text", "").split("\n"))
    return tuple(dict.fromkeys(line for line in lines if line))[:MAX_ANSWERS]


FILE = CheckKind(
    name="file",
    params=builtin_params("file"),
    evaluate=_file,
    answers=_answers,
    prepare=_prepare,
    after_turn=False,
)
