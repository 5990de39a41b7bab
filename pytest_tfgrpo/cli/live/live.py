"""The commands ``tfgrpo live ...``: start with live RL, look at what it learned, and reset its guard."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.parsers import Arguments, Parser, Subparsers, add_command, add_group, whole
from pytest_tfgrpo.core.errors import SettingError, StoreError

if TYPE_CHECKING:
    from pytest_tfgrpo.production.live.config import LiveConfig
    from pytest_tfgrpo.production.live.store.store import LiveStore

ABOUT = (
    "Let runs in production choose among arms, such as prompts or models. What learns is the selector, a "
    "table of probabilities for each category of task, never the model."
)


def declare(commands: Subparsers) -> None:
    """Add the group."""
    group = add_group(commands, "live", ABOUT)
    command = add_command(group, "init", init)
    command.add_argument("folder", nargs="?", default=".", metavar="DIR", help="folder (default: here)")
    command.add_argument("--force", action="store_true", help="overwrite files that exist")
    command = add_command(group, "demo", demo)
    command.add_argument("--tasks", type=whole, default=600, metavar="N", help="tasks (default: 600)")
    command.add_argument("--seed", type=whole, default=0, metavar="N", help="seed of tasks (default: 0)")
    command.add_argument(
        "--shuffle-rewards",
        action="store_true",
        help="report the score of some other task, so that there is nothing to learn",
    )
    command.add_argument("--into", metavar="DIR", help="empty folder to keep its files in (default: none)")
    command = add_command(group, "status", status)
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_config(command)
    command = add_command(group, "report", report)
    _add_last(command)
    _add_config(command)
    command = add_command(group, "evaluate", evaluate)
    command.add_argument("--policy", required=True, metavar="P", help="arm:NAME, selector:N or uniform")
    command.add_argument("--point", metavar="NAME", help="where it chooses (default: the only point)")
    command.add_argument(
        "--quantity", choices=("reward", "score"), default="reward", help="what it earns (default: reward)"
    )
    _add_last(command)
    _add_config(command)
    command = add_command(group, "drafts", drafts)
    command.add_argument("--into", required=True, metavar="DIR", help="folder of the drafts")
    command.add_argument("--most", type=whole, default=10, metavar="N", help="at most (default: 10)")
    _add_last(command)
    _add_config(command)
    _add_config(add_command(group, "export", export))
    command = add_command(group, "ingest", ingest)
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="OTLP JSON lines; several are taken together"
    )
    _add_config(command)
    command = add_command(group, "reset", reset)
    command.add_argument("--actor", required=True, metavar="A", help="who resets it, for the journal")
    command.add_argument("--reason", required=True, metavar="R", help="why, for the journal")
    _add_config(command)


def _add_config(command: Parser) -> None:
    command.add_argument(
        "--config", metavar="FILE", help="configuration (default: TFGRPO_LIVE_RL_CONFIG, else live.toml)"
    )


def _add_last(command: Parser) -> None:
    command.add_argument(
        "--last", type=whole, default=10_000, metavar="N", help="newest runs to look at (default: 10000)"
    )


def init(arguments: Arguments) -> Iterator[str]:
    """Write a first live.toml, and an example service that uses it."""
    from pytest_tfgrpo.cli.suite.init import copy_files, example_folder

    folder = Path(arguments.folder)
    yield from copy_files(example_folder("live"), folder, force=arguments.force)
    where = "" if folder.resolve() == Path.cwd() else f"cd {folder} && "
    yield f"next: {where}TFGRPO_LIVE_RL_ENABLED=1 python service.py 400, then tfgrpo live status"


def demo(arguments: Arguments) -> Iterator[str]:
    """Watch a selector learn which of three arms is best, offline; then its store fails and is killed."""
    from tempfile import TemporaryDirectory

    from pytest_tfgrpo.cli.live.live_demo import demo as run

    with TemporaryDirectory(prefix="tfgrpo-live-demo-") as temporary:
        folder = Path(arguments.into or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise SettingError(f"{folder} is not empty; name a new folder")
        yield from run(folder, arguments.tasks, arguments.seed, shuffled=arguments.shuffle_rewards)


def status(arguments: Arguments) -> Iterator[str]:
    """Print gate, runs, what updates left out, probabilities and the last update."""
    from pytest_tfgrpo.production.live.report import status_lines, status_of

    with _opened(arguments) as (config, store):
        found = status_of(config, store)
    yield from [json.dumps(found, indent=1)] if arguments.json else status_lines(found)


def report(arguments: Arguments) -> Iterator[str]:
    """Print what the selector brings over its control, how each category fares, and the last updates."""
    from pytest_tfgrpo.production.live.report import report_lines

    with _opened(arguments) as (_, store):
        yield from report_lines(store, arguments.last)


def evaluate(arguments: Arguments) -> Iterator[str]:
    """Estimate from the runs there were what another policy would have earned."""
    from pytest_tfgrpo.production.live.report import logged_selector, newest, policies_of, value_lines
    from pytest_tfgrpo.production.live.selection.evaluate import evaluate as value
    from pytest_tfgrpo.production.live.selection.evaluate import target_policy

    with _opened(arguments) as (_, store):
        state = logged_selector(store)
        name = _point(arguments.point, list(state.points))
        policies = policies_of(store, name, state.points[name].arms)
        target = target_policy(arguments.policy, state.points[name], policies)
        found = value(
            newest(store, arguments.last),
            target,
            state,
            name,
            policy=arguments.policy,
            quantity=arguments.quantity,
            numbered=policies,
        )
    yield from value_lines(found)


def _point(name: str | None, points: Sequence[str]) -> str:
    """Return the point that is meant; raises SettingError and StoreError."""
    from pytest_tfgrpo.core.wire.schema import nearest

    if not points:
        raise StoreError("no run in the store has chosen an arm")
    if name is None and len(points) > 1:
        raise SettingError(f"there are several points; name one of {', '.join(points)} with --point")
    if name is not None and name not in points:
        raise SettingError(f"no point is called {name!r}{nearest(name, points)}; known: {', '.join(points)}")
    return name or points[0]


def drafts(arguments: Arguments) -> Iterator[str]:
    """Write the runs that went most unlike others of their category as drafts of scenarios."""
    from pytest_tfgrpo.production.live.drafts import drafts_of, write_drafts
    from pytest_tfgrpo.production.live.report import newest

    with _opened(arguments) as (config, store):
        found = drafts_of(newest(store, arguments.last), arguments.most)
    written = write_drafts(found, Path(arguments.into))
    yield from (f"wrote  {path}" for path in written)
    if not found:
        yield f"no run has a prompt and a reward unlike others (text = {config.settings.text!r})"
    elif len(written) < len(found):
        yield f"kept   {len(found) - len(written)} that exist"
    if written:
        yield "next: add checks to a draft and rename it to NAME.scenario.yaml; before, it is not collected"


def export(arguments: Arguments) -> Iterator[str]:
    """Print each choice as a line of JSON: context, arms, arm, propensity, reward."""
    from pytest_tfgrpo.production.live.choices_export import choice_lines

    with _opened(arguments) as (_, store):
        yield from choice_lines(store.rollouts())


def ingest(arguments: Arguments) -> Iterator[str]:
    """Store the runs of agents of other frameworks, from files of their OpenTelemetry spans."""
    from pytest_tfgrpo.production.live.config import load_live_config
    from pytest_tfgrpo.production.live.intake.spans import SpanIngest, ingest_lines
    from pytest_tfgrpo.production.live.loop import rules_of
    from pytest_tfgrpo.production.live.selection.rewards import open_inference
    from pytest_tfgrpo.production.live.store.store import open_live_store

    config = load_live_config(arguments.config, {"enabled": True}, os.environ)
    path, settings = config.store, config.settings
    if path is None:
        raise StoreError(f"{config.path}: store = 'none' is kept in memory; name a file")
    rules = rules_of(config, open_inference(settings.inference, config.path.parent))
    files = [Path(name) for name in arguments.files]
    for file in files:
        if not file.is_file():
            raise SettingError(f"there is no file {file}")
    with closing(open_live_store(path, settings.namespace)) as store:
        yield from ingest_lines(SpanIngest(store, rules, settings=settings).ingest(files))


def reset(arguments: Arguments) -> Iterator[str]:
    """Let a gate that holds pass again; its memory of failures and of control starts anew."""
    import time

    from pytest_tfgrpo.production.live.selection.guard import reset as passing

    now = time.time()
    with _opened(arguments) as (_, store):
        before = store.gate()
        try:
            store.change_gate(lambda state: passing(state, arguments.actor, arguments.reason, now), now=now)
        except ValueError as error:
            raise SettingError(str(error)) from error
    held = f"it held by {before.reason}" if before.state == "hold" else "it did not hold"
    yield f"gate       passes, reset by {arguments.actor}: {arguments.reason}; {held}"


@contextmanager
def _opened(arguments: Arguments) -> Iterator[tuple[LiveConfig, LiveStore]]:
    """Yield configuration and store; raises StoreError where there is no store yet."""
    from pytest_tfgrpo.production.live.config import load_live_config
    from pytest_tfgrpo.production.live.store.store import open_live_store

    config = load_live_config(arguments.config, {}, os.environ)
    path = config.store
    if path is None:
        raise StoreError(
            f"{config.path}: store = 'none' is kept in memory; call live.status() in the process"
        )
    if not path.exists():
        raise StoreError(
            f"there is no live store {path} yet; it is made by the first run with enabled = true"
        )
    with closing(open_live_store(path, config.settings.namespace)) as store:
        yield config, store
