"""The check that calls a Python function."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.records import CheckResult
from pytest_tfgrpo.core.scenarios import Check
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.scoring.checks.protocol import BadParam, CheckContext, CheckKind, builtin_params


def plain_callable(target: str) -> Callable[[Any], Any]:
    """Return the callable that `target` names as module:callable; what its import raises is not caught.

    Raises TypeError where it is none, or async.
    """
    module, _, names = target.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    if not callable(found) or inspect.iscoroutinefunction(found):
        raise TypeError(f"{target!r} is not a plain callable")
    return found  # type: ignore[no-any-return]


def _prepare(params: Mapping[str, Json], _folder: Path) -> Mapping[str, Json]:
    require_callable("target", params["target"])
    return params


def require_callable(key: str, target: str) -> None:
    """Raise BadParam unless the parameter `key` names a plain callable."""
    try:
        plain_callable(target)
    except (Exception, SystemExit) as error:  # a module may raise anything while it is imported
        hint = "; is its folder on pytest's pythonpath?" if isinstance(error, ModuleNotFoundError) else ""
        raise BadParam(key, f"{target!r} cannot be used: {error!r}{hint}") from error


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
