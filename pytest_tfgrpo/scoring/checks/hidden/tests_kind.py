"""The parameters of the check kind ``tests``; `hidden_tests` runs them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.file_digests import digest_of
from pytest_tfgrpo.sandbox.paths import check_name, confined
from pytest_tfgrpo.scoring.checks.hidden.changes import require_changes
from pytest_tfgrpo.scoring.checks.hidden.hidden_archives import remember
from pytest_tfgrpo.scoring.checks.protocol import BadParam
from pytest_tfgrpo.scoring.runners.javascript.flags import node_flags
from pytest_tfgrpo.scoring.runners.registry import RUNNERS

TIMEOUT_S = 300.0
ARCHIVE_MAX_BYTES = 1_000_000_000


def prepare(params: Mapping[str, Json], folder: Path) -> Mapping[str, Json]:
    """Complete the parameters with the digest of the hidden archive, if they lack it, and with defaults."""
    runner = params["runner"]
    name, start, run = (runner, ".", ()) if isinstance(runner, str) else _parts(runner)
    if name not in RUNNERS:
        known = ", ".join(sorted(RUNNERS))
        raise BadParam("runner", f"there is no runner {name!r}; known are {known}")
    if start != ".":
        _check("runner", start)
    if name != "node-test" and (name == "command") is not bool(run):
        raise BadParam("runner", "the runner 'command', and no other, needs arguments as 'run'")
    if name == "node-test":
        try:
            node_flags(run)
        except ValueError as error:
            raise BadParam("runner", str(error)) from None
    for key in ("fail_to_pass", "pass_to_pass"):
        for id_ in params.get(key, ()):
            _check(key, id_.partition("::")[0])
    for change in params.get("changes", ()):
        _check("changes", change["file"])
    for name in params.get("removed", ()):
        _check("removed", name)
    if twice := sorted(set(params["fail_to_pass"]) & set(params.get("pass_to_pass", ()))):
        raise BadParam(
            "pass_to_pass", f"{twice[0]!r} is in fail_to_pass too; list a test in only one of them"
        )
    try:
        path = confined(folder, params["hidden"], ARCHIVE_MAX_BYTES)
        digest = digest_of(path)
    except (ValueError, OSError) as error:
        raise BadParam("hidden", str(error)) from None
    if (named := params.get("hidden_sha256", digest)) != digest:
        raise BadParam(
            "hidden_sha256",
            f"{params['hidden']!r} has the sha256 {digest}, not {named}; restore the file, or write the "
            "digest that it has",
        )
    if params.get("changes"):
        require_changes(params["changes"], {*params["fail_to_pass"], *params.get("pass_to_pass", ())}, path)
    remember(digest, path)
    return {"timeout_s": TIMEOUT_S, **params, "hidden_sha256": digest}


def _check(key: str, name: str) -> None:
    try:
        check_name(name)
    except ValueError as error:
        raise BadParam(key, str(error)) from None


def _parts(runner: Mapping[str, Json]) -> tuple[str, str, tuple[str, ...]]:
    return runner["name"], runner.get("folder", "."), tuple(runner.get("run", ()))
