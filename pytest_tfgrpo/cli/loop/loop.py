"""The commands ``tfgrpo loop ...``: what an agent in production did, and how good it was."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.cli.loop.open_loop import (
    current_view,
    existing_bus,
    load_config,
    open_configured,
    open_scrubber,
)
from pytest_tfgrpo.cli.parsers import Arguments, Parser, Subparsers, add_command, add_group, positive
from pytest_tfgrpo.core.errors import SettingError

if TYPE_CHECKING:
    from pytest_tfgrpo.production.bus.protocol import Bus
    from pytest_tfgrpo.production.door.opt_outs import OptOuts
    from pytest_tfgrpo.production.door.scrubber import LoopScrubber
    from pytest_tfgrpo.production.report.figures import LoopReport, ShownTrajectory
    from pytest_tfgrpo.production.report.status import LoopStatus

ABOUT = (
    "Take the traces of an agent in production, without secrets, and score each run of the agent: by kind of "
    "task and by version. Nothing learns from it here."
)


def declare(commands: Subparsers) -> None:
    """Add the group."""
    group = add_group(commands, "loop", ABOUT)
    command = add_command(group, "init", init)
    command.add_argument("folder", nargs="?", default=".", metavar="DIR", help="folder (default: here)")
    command.add_argument("--force", action="store_true", help="overwrite a loop.toml that exists")
    command = add_command(group, "demo", demo)
    command.add_argument("--tasks", type=positive, default=400, metavar="N", help="tasks (default: 400)")
    command.add_argument("--seed", type=positive, default=0, metavar="N", help="seed of tasks (default: 0)")
    command.add_argument("--bus", metavar="URL", default="", help="bus of the loop that is killed")
    command.add_argument("--into", metavar="DIR", help="empty folder to keep its files in (default: none)")
    _add_config(add_command(group, "config", config))
    _add_config(add_command(group, "serve", serve))
    command = add_command(group, "status", status)
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_config(command)
    command = add_command(group, "report", report)
    command.add_argument(
        "--last",
        type=positive,
        default=10_000,
        metavar="N",
        help="newest trajectories to look at (default: 10000)",
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_config(command)
    command = add_command(group, "show", show)
    command.add_argument("id", metavar="ID", help="id of a trajectory, or its start")
    command.add_argument("--full", action="store_true", help="show texts whole")
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_config(command)
    command = add_command(group, "forget", forget)
    _add_whose(command)
    command.add_argument("--actor", metavar="A", help="who does it, for the record (default: you)")
    _add_config(command)
    command = add_command(group, "import", import_)
    command.add_argument(
        "files", nargs="+", metavar="FILE", help="file or folder; several are taken together"
    )
    command.add_argument(
        "--scale",
        type=_scale,
        action="append",
        default=[],
        metavar="NAME=LOW..HIGH",
        help="range of a score of Langfuse that is not from 0 to 1; repeatable",
    )
    _add_config(command)
    _declare_opt_out(group)


def _declare_opt_out(group: Subparsers) -> None:
    group = add_group(group, "opt-out", "Leave out what users or sessions do from now on, by their wish.")
    for name, run in (("add", opt_out_add), ("remove", opt_out_remove)):
        command = add_command(group, name, run)
        _add_whose(command)
        _add_config(command)
    _add_config(add_command(group, "list", opt_out_list))


def _add_whose(command: Parser) -> None:
    whose = command.add_mutually_exclusive_group(required=True)
    whose.add_argument("--session", metavar="S", default="", help="id of a session, as your service sends it")
    whose.add_argument("--user", metavar="U", default="", help="id of a user, as your service sends it")


def _add_config(command: Parser) -> None:
    command.add_argument(
        "--config", metavar="FILE", help="configuration (default: TFGRPO_LOOP_CONFIG, else loop.toml)"
    )


def _scale(text: str) -> tuple[str, tuple[float, float]]:
    """Return a name and two numbers; raises ArgumentTypeError."""
    name, _, bounds = text.rpartition("=")
    low, dots, high = bounds.partition("..")
    try:
        if name and dots:
            return name, (float(low), float(high))
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"must be NAME=LOW..HIGH such as stars=1..5, not {text!r}")


def init(arguments: Arguments) -> Iterator[str]:
    """Write a first loop.toml, and the key of its pseudonyms, which only you can read."""
    from pytest_tfgrpo.production.config import LOOP_FILE
    from pytest_tfgrpo.production.loop_file import write_key, write_loop_file
    from pytest_tfgrpo.production.settings import LOOP_TABLE

    folder = Path(arguments.folder)
    folder.mkdir(parents=True, exist_ok=True)
    file, key = folder / LOOP_FILE, folder / LOOP_TABLE["privacy.key_file"].default
    if file.exists() and not arguments.force:
        raise SettingError(f"{file} exists; overwrite it with --force")
    write_loop_file(file)
    yield f"wrote  {file}"
    yield f"wrote  {key}" if write_key(key) else f"kept   {key}"
    yield f"next: keep {key.name} out of version control, then " + _hint(folder, "tfgrpo loop serve")


def _hint(folder: Path, command: str) -> str:
    return command if folder.resolve() == Path.cwd() else f"cd {folder} && {command}"


def demo(arguments: Arguments) -> Iterator[str]:
    """Watch three days of an agent become rewards, offline, while its service is killed (extra serve)."""
    from tempfile import TemporaryDirectory

    from pytest_tfgrpo.cli.loop.loop_demo import demo as run

    with TemporaryDirectory(prefix="tfgrpo-loop-demo-") as temporary:
        folder = Path(arguments.into or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise SettingError(f"{folder} is not empty; name a new folder")
        yield from run(folder, arguments.seed, arguments.tasks, arguments.bus)
        if arguments.into:
            yield f"next: tfgrpo loop show ID --config {folder / 'killed' / 'loop.toml'}"


def config(arguments: Arguments) -> Iterator[str]:
    """Print the value of every setting and where it comes from; secrets are not shown."""
    from pytest_tfgrpo.production.config import config_lines, load_loop_config

    yield from config_lines(load_loop_config(arguments.config, os.environ))


def serve(arguments: Arguments) -> Iterator[str]:
    """Take traces, trajectories and feedback over HTTP, and score them, until SIGTERM or Ctrl-C."""
    from pytest_tfgrpo.cli.loop.loop_serve import serve_loop

    yield from serve_loop(arguments.config)


def status(arguments: Arguments) -> Iterator[str]:
    """Print how far the loop is: what is stored, what waits, and who does which job."""
    from pytest_tfgrpo.production.report.status import status_lines, status_of

    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        found = status_of(bus, view, config.public_bus)
    yield from [_json(found)] if arguments.json else status_lines(found)


def report(arguments: Arguments) -> Iterator[str]:
    """Print what came in, what is missing and what to do; mean rewards; and the worst kinds of task."""
    from pytest_tfgrpo.production.report.figure_lines import report_lines
    from pytest_tfgrpo.production.report.figures import report_of

    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        found = report_of(bus, view, arguments.last)
    yield from [_json(found)] if arguments.json else report_lines(found)


def show(arguments: Arguments) -> Iterator[str]:
    """Print a trajectory: its turns, what was said of it, and its rewards."""
    from pytest_tfgrpo.production.report.figures import find_shown
    from pytest_tfgrpo.production.report.trajectory_lines import LIMIT, shown_lines

    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        found = find_shown(view, bus, arguments.id)
    yield from [_json(found)] if arguments.json else shown_lines(found, None if arguments.full else LIMIT)


def _json(value: LoopStatus | LoopReport | ShownTrajectory) -> str:
    return json.dumps(asdict(value), indent=1)


def forget(arguments: Arguments) -> Iterator[str]:
    """Overwrite all that is stored of a user or session; a record of it stays, without their id."""
    from pytest_tfgrpo.production.forget import forget as overwrite
    from pytest_tfgrpo.production.report.figure_lines import labelled, streams_text

    if not (arguments.session or arguments.user).strip():
        raise SettingError("name the session or user to forget; an empty id is nobody's")
    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        found = overwrite(
            bus,
            view,
            scrubber=open_scrubber(config),
            actor=arguments.actor or _operator(),
            session=arguments.session,
            user=arguments.user,
        )
    yield from labelled("forgot", f"{found.whose} {found.ref}: {streams_text(found.removed)}")
    if found.shared:
        said = f"{found.shared:,} sessions have other users; what names nobody there stays (see --session)"
        yield from labelled("shared", said)


def _operator() -> str:
    """Return the name of who runs this, as far as it is known."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def import_(arguments: Arguments) -> Iterator[str]:
    """Take in files of OTLP JSON lines, and exports of Langfuse: observations and scores."""
    from pytest_tfgrpo.cli.loop.loop_serve import work_off
    from pytest_tfgrpo.production.door.intake import Intake
    from pytest_tfgrpo.production.imports.files import import_files

    with _opened_door(arguments) as (bus, scrubber, rows):
        paths = [Path(name) for name in arguments.files]
        found = import_files(paths, Intake(bus, scrubber, rows), dict(arguments.scale))
        yield from found.lines()
        if work_off(bus, load_config(arguments.config), rows):
            yield "next: tfgrpo loop report; traces without their root are completed by tfgrpo loop serve"
        else:
            yield "next: the service that runs makes trajectories of them; see tfgrpo loop status"


def opt_out_add(arguments: Arguments) -> Iterator[str]:
    """Take nothing of a user or session from now on; what is stored stays (see forget)."""
    with _opened_door(arguments) as (_, _, rows):
        rows.add(session=arguments.session, user=arguments.user)
    yield "opted out  from now on; tfgrpo loop forget overwrites what was stored before"


def opt_out_remove(arguments: Arguments) -> Iterator[str]:
    """Take data of a user or session again."""
    with _opened_door(arguments) as (_, _, rows):
        found = rows.remove(session=arguments.session, user=arguments.user)
    yield "opted in   from now on" if found else "unchanged  had not opted out"


def opt_out_list(arguments: Arguments) -> Iterator[str]:
    """Print who opted out and when, by pseudonym: nobody's id is stored."""
    from pytest_tfgrpo.core.texts.text import table

    with _opened_door(arguments) as (_, _, rows):
        listed = rows.listed()
    yield from (
        table(["whose", "pseudonym", "since"], [list(one) for one in listed], left=3) if listed else ["none"]
    )


@contextmanager
def _opened_door(arguments: Arguments) -> Iterator[tuple[Bus, LoopScrubber, OptOuts]]:
    from pytest_tfgrpo.production.door.opt_outs import OptOuts

    config = load_config(arguments.config)
    scrubber = open_scrubber(config)
    with closing(open_configured(config)) as bus, closing(OptOuts(bus, scrubber)) as rows:
        yield bus, scrubber, rows
