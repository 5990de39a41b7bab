"""The check that calls a Python function."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.python.named_callable import plain_callable, require_callable
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.code_stamp import code_sha256
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.protocol import BadParam, CheckContext, CheckKind, builtin_params


def _prepare(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    try:
        require_callable(params["target"])
    except ValueError as error:
        raise BadParam("target", str(error)) from error
    code = code_sha256(params["target"])
    return {**params, "target_sha256": code} if code else params


def _python(check: Check, context: CheckContext) -> CheckResult:
    target = check.params["target"]
    try:
        outcome = plain_callable(target)(context)
    except BaseException as error:  # sys.exit() and pytest.fail() must not end the run
        raise CheckError(f"{target!r} raised {error!r}; return a score instead") from error
    credit, reason = outcome if isinstance(outcome, tuple) and len(outcome) == 2 else (outcome, "")
    if not isinstance(credit, int | float) or not 0 <= credit <= 1 or not isinstance(reason, str):
        raise CheckError(
            f"{target!r} must return a bool, a score in [0, 1] or (score, reason), not {short(outcome)}"
        )
    if credit < 1 and not reason:
        reason = f"{target!r} gave {float(credit):g}"
    return CheckResult(kind=check.title, weight=check.weight, credit=float(credit), reason=reason)


PYTHON = CheckKind(name="python", params=builtin_params("python"), evaluate=_python, prepare=_prepare)
