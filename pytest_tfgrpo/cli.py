"""The ``tfgrpo`` command: one short function per subcommand; each yields the lines that it prints.

Exit codes: 0, 1 for an expected error, 2 for wrong usage, 3 for a bug, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_tfgrpo import __version__
from pytest_tfgrpo.core.errors import PackError, SettingError, TfgrpoError
from pytest_tfgrpo.face import baselines, recordings, rendering
from pytest_tfgrpo.face import experiences as lessons

if TYPE_CHECKING:
    from pytest_tfgrpo.core.lessons import Experience
    from pytest_tfgrpo.face.project import Project

Arguments: TypeAlias = argparse.Namespace
Command: TypeAlias = Callable[[Arguments], Iterator[str]]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line `argv` (default: that of the process) and return the exit code."""
    arguments = _parser().parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        for line in arguments.command(arguments):
            print(line, flush=True)
    except BrokenPipeError:  # the reader has left; keep the interpreter from flushing into the void
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (TfgrpoError, OSError) as error:
        from pytest_tfgrpo.harness.printable import block

        print(f"tfgrpo: {block(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except Exception:  # noqa: BLE001 - the one place where a bug ends
        import traceback

        traceback.print_exc()
        print("tfgrpo: this is a bug in pytest-tfgrpo; please report it", file=sys.stderr)
        return 3
    return 0


def _project(arguments: Arguments) -> Project:
    from pytest_tfgrpo.face.project import open_project

    flags = {name: value for name in ("out", "task_id") if (value := getattr(arguments, name, None))}
    return open_project(Path.cwd(), flags, os.environ)


def init(arguments: Arguments) -> Iterator[str]:
    """Write a first project: scenarios, a stamped prompt pack, and the lines in pytest's ini file."""
    from pytest_tfgrpo.face.starter import start

    yield from start(Path(arguments.folder), force=arguments.force, example=arguments.example)


def stamp(arguments: Arguments) -> Iterator[str]:
    """Stamp prompt packs after a review, or verify their stamps."""
    from pytest_tfgrpo.harness.loading.packs import load_pack, write_pack_stamp

    problems = []
    for folder in _packs(arguments):
        if not arguments.check:
            changed = write_pack_stamp(folder)
            yield f"{'stamped' if changed else 'unchanged'}  {folder}"
            continue
        try:
            yield f"ok  {folder}  {load_pack(folder).stamp[:12]}"
        except PackError as error:
            problems.append(str(error))
    if problems:
        raise PackError("\n".join(problems))


def _packs(arguments: Arguments) -> Iterator[Path]:
    from pytest_tfgrpo.harness.loading.packs import MANIFEST, pack_folders

    project = _project(arguments)
    for name in arguments.folders or [project.root / project.settings["prompt_packs"]]:
        folder = Path(name)
        packs = [folder] if (folder / MANIFEST).is_file() else pack_folders(folder)
        if not packs:
            raise PackError(f"{folder} is no prompt pack and holds none; a pack is a folder with {MANIFEST}")
        yield from packs


def runs(arguments: Arguments) -> Iterator[str]:
    """List the runs of the task, oldest first."""
    from pytest_tfgrpo.face.archive import read_report
    from pytest_tfgrpo.harness import bill
    from pytest_tfgrpo.harness.gate_lines import overall
    from pytest_tfgrpo.harness.printable import number, table
    from pytest_tfgrpo.harness.runs import list_runs

    project = _project(arguments)
    rows = []
    for folder in list_runs(project.out, project.task_id):
        report = read_report(folder)
        if report is None:
            rows.append([folder.name, "killed", "-", "-", "-", "-"])
            continue
        evals = [row["gt_score"]["mean"] for row in report["epochs"] if row["mode"] == "eval"]
        gain = report["gain"]["difference"] if report["gain"] else None
        shown_gain = "-" if gain is None else f"{gain:+.3f}"
        mean = number(evals[-1] if evals else None)
        rows.append(
            [
                folder.name,
                report["status"],
                overall(report["gate"]) if report["gate"] else "-",
                mean,
                shown_gain,
                bill.spent(report["cost"]) if "cost" in report else "-",
            ]
        )
    if rows:
        yield from table(["run", "status", "gate", "eval mean", "gain", "cost"], rows, left=3)
    else:
        yield f"no runs of task {project.task_id!r} under {project.out}; run pytest --tfgrpo"


def report(arguments: Arguments) -> Iterator[str]:
    """Print the report of a run again and write its page, or those of two runs side by side."""
    yield from rendering.report(_project(arguments), arguments)


def show(arguments: Arguments) -> Iterator[str]:
    """Print a whole rollout: every frame, the answer, the checks, the scores."""
    from pytest_tfgrpo.face.archive import find_rollout
    from pytest_tfgrpo.harness.texts import rollout_text

    found = find_rollout(_project(arguments), arguments.rollout)
    yield rollout_text(found.rollout, found.score, found.scenario)


def baseline_save(arguments: Arguments) -> Iterator[str]:
    """Store the final sweep of a run as a baseline, for review and commit."""
    yield from baselines.save(_project(arguments), arguments)


def baseline_show(arguments: Arguments) -> Iterator[str]:
    """Print a stored baseline."""
    yield from baselines.show(_project(arguments), arguments)


def baseline_compare(arguments: Arguments) -> Iterator[str]:
    """Compare two baselines, or runs: what the gate would say of B, were A its baseline."""
    yield from baselines.compare(_project(arguments), arguments)


def library_show(arguments: Arguments) -> Iterator[str]:
    """Print the lessons of a library."""
    from pytest_tfgrpo.face.archive import find_library

    library, _ = find_library(_project(arguments), arguments.library)
    yield f"library {library.hash[:12]}, lessons: {len(library.experiences)}"
    yield from (f"  {_lesson(experience)}" for experience in library.experiences)


def library_diff(arguments: Arguments) -> Iterator[str]:
    """Print what tells one library from another."""
    from pytest_tfgrpo.face.archive import COMMITTED, find_library
    from pytest_tfgrpo.harness.library import diff

    project = _project(arguments)
    names = [arguments.a, arguments.b] if arguments.b else [COMMITTED, arguments.a]
    (a, older), (b, newer) = (find_library(project, name) for name in names)
    found = diff(a, b, [*older, *newer])
    yield f"--- {names[0]}  {a.hash[:12]}, lessons: {len(a.experiences)}"
    yield f"+++ {names[1]}  {b.hash[:12]}, lessons: {len(b.experiences)}"
    for old, new in found.changed:
        yield from (f"- {_lesson(experience)}" for experience in old)
        yield f"+ {_lesson(new)}"
    yield from (f"- {_lesson(experience)}" for experience in found.removed)
    yield from (f"+ {_lesson(experience)}" for experience in found.added)


def library_promote(arguments: Arguments) -> Iterator[str]:
    """Write the library of a run to the committed file, for review and commit."""
    from pytest_tfgrpo.face.archive import COMMITTED, find_library, find_run, read_report, require_promotable
    from pytest_tfgrpo.harness.gate_lines import overall
    from pytest_tfgrpo.harness.library import diff, save_library
    from pytest_tfgrpo.harness.runs import load_run

    project = _project(arguments)
    folder = find_run(project, arguments.run.partition("@")[0])
    file = require_promotable(project, load_run(folder))
    before, _ = find_library(project, COMMITTED)
    library, history = find_library(project, arguments.run)
    changes = diff(before, library, history)
    save_library(file, library)
    summary = f"+{len(changes.added)} ~{len(changes.changed)} -{len(changes.removed)}"
    yield f"wrote {file}, lessons: {len(library.experiences)} ({summary}); review it and commit it"
    gate = (read_report(folder) or {}).get("gate")
    if gate and overall(gate) == "fail":
        yield f"warning: the gate of run {folder.name} failed; see tfgrpo report {folder.name}"


def library_rebase(arguments: Arguments) -> Iterator[str]:
    """Stamp the committed library with the prompt packs as they are now, after a review of their change."""
    from pytest_tfgrpo.core.clock import utc_now
    from pytest_tfgrpo.face.archive import committed_file
    from pytest_tfgrpo.harness.library import load_library, rebase, save_library
    from pytest_tfgrpo.harness.loading.packs import ANY_DOMAIN, builtin_pack, load_packs

    project = _project(arguments)
    file = committed_file(project)
    if file is None:
        raise SettingError("library is 'none' (the default), so there is no file to rebase")
    packs = {ANY_DOMAIN: builtin_pack()} | load_packs(project.root / project.settings["prompt_packs"])
    revision = rebase(load_library(file), packs, run_id="rebase", created_at=utc_now())
    if revision.applied:
        save_library(file, revision.library)
    yield f"{file}: {len(revision.applied)} of {len(revision.library.experiences)} lessons stamped anew"


def experiences(arguments: Arguments) -> Iterator[str]:
    """List the lessons of the task and what each does, or export them as JSON lines."""
    yield from lessons.experiences(_project(arguments), arguments, _warn)


def _warn(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def record_add(arguments: Arguments) -> Iterator[str]:
    """Record a run, the latest one, after it was made: as --tfgrpo-record would have."""
    yield from recordings.add(_project(arguments), Path(arguments.file), arguments.run)


def record_prune(arguments: Arguments) -> Iterator[str]:
    """Remove from a recording what a run, the latest one, does not use."""
    yield from recordings.prune(
        _project(arguments),
        Path(arguments.file),
        arguments.run or ["latest"],
        others=arguments.others,
        dry=arguments.dry_run,
    )


def _lesson(experience: Experience) -> str:
    from pytest_tfgrpo.harness.printable import line

    evidence = f"{experience.reward.gt_score:.2f} over {experience.support.rollouts} rollouts"
    return f"{experience.polarity:5} {line(experience.domain)}: {line(experience.summary32)} ({evidence})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tfgrpo", description="Work with what pytest --tfgrpo learned.")
    top = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    parser.add_argument("--version", action="version", version=f"pytest-tfgrpo {__version__}")
    task = argparse.ArgumentParser(add_help=False)
    task.add_argument(
        "--out", metavar="DIR", help="output folder (default: as pytest's ini file says, else out)"
    )
    task.add_argument("--task-id", metavar="ID", help="task (default: as the ini file says, else its folder)")

    add = _adder(top)
    command = add("init", init)
    command.add_argument(
        "folder", nargs="?", default=".", metavar="DIR", help="project folder (default: here)"
    )
    command.add_argument("--force", action="store_true", help="write the example files anew where they exist")
    command.add_argument(
        "--example",
        metavar="NAME",
        help="another example than the small one: coding, for agents that change files",
    )
    command = add("stamp", stamp)
    command.add_argument(
        "--check", action="store_true", help="only verify; exit 1 names each file that differs"
    )
    command.add_argument("folders", nargs="*", metavar="FOLDER", help="packs, or folders of packs")
    add("runs", runs, task)
    command = add("report", report, task)
    _add_run(command, "run", nargs="?")
    rendering.declare(command)
    command = add("show", show, task)
    command.add_argument(
        "rollout", metavar="ROLLOUT", help="id of a rollout or its end, such as e1.count-words.r0"
    )
    _add_baseline(top, task)
    _add_library(top, task)
    _add_record(top, task)
    lessons.declare(add("experiences", experiences, task))
    return parser


Group: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _adder(group: Group) -> Callable[..., argparse.ArgumentParser]:
    """Return a function that adds a subcommand to `group`; the first line of its docstring is the help."""

    def add(name: str, command: Command, *parents: argparse.ArgumentParser) -> argparse.ArgumentParser:
        text = (command.__doc__ or "").partition("\n")[0]
        parser = group.add_parser(name, help=text, description=text, parents=list(parents))
        parser.set_defaults(command=command)
        return parser

    return add


def _add_baseline(top: Group, task: argparse.ArgumentParser) -> None:
    group = _adder(_group(top, "baseline", "Baselines that the gate compares with."))
    command = group("save", baseline_save, task)
    command.add_argument(
        "name", metavar="NAME", help="name, for baselines/NAME.json, or a path ending in .json"
    )
    _add_run(command, "--run")
    group("show", baseline_show).add_argument("name", metavar="NAME", help="name or path")
    baselines.declare_compare(group("compare", baseline_compare, task))


def _add_library(top: Group, task: argparse.ArgumentParser) -> None:
    group = _adder(_group(top, "library", "Libraries of lessons."))
    which = "a run, RUN@EPOCH, 'committed' (the file of the setting library) or a library file"
    command = group("show", library_show, task)
    command.add_argument(
        "library", nargs="?", default="latest", metavar="LIBRARY", help=f"{which} (default: latest)"
    )
    command = group("diff", library_diff, task)
    command.add_argument("a", metavar="A", help=which)
    command.add_argument(
        "b", nargs="?", metavar="B", help="the same; without it, A is compared with 'committed'"
    )
    _add_run(group("promote", library_promote, task), "run", help="a run, or RUN@EPOCH")
    group("rebase", library_rebase)


def _add_record(top: Group, task: argparse.ArgumentParser) -> None:
    group = _adder(_group(top, "record", "Recordings, which runs are replayed from."))
    group("stat", recordings.stat).add_argument("file", metavar="FILE", help="a recording")
    group("verify", recordings.verify).add_argument("file", metavar="FILE", help="a recording")
    command = group("add", record_add, task)
    command.add_argument("file", metavar="FILE", help="a recording, or where to make one")
    _add_run(command, "--run")
    command = group("prune", record_prune, task)
    command.add_argument("file", metavar="FILE", help="a recording")
    _add_run(command, "--run", action="append", default=None, help="keep what this run uses; may be repeated")
    command.add_argument("--others", action="store_true", help="also remove actors that none of the runs has")
    command.add_argument("--dry-run", action="store_true", help="only say what would go")


def _group(top: Group, name: str, text: str) -> Group:
    parser = top.add_parser(name, help=text, description=text)
    return parser.add_subparsers(title="commands", required=True, metavar="COMMAND")


def _add_run(parser: argparse.ArgumentParser, name: str, **more: Any) -> None:
    text = "id of a run, its beginning or end, 'latest' or 'previous' (default: latest)"
    parser.add_argument(name, **{"default": "latest", "metavar": "RUN", "help": text, **more})
