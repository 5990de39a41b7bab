"""The command ``tfgrpo runs``: the runs of a task."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.parsers import Arguments, Subparsers, add_command, add_task, project_of


def declare(commands: Subparsers) -> None:
    """Add the command."""
    add_task(add_command(commands, "runs", runs))


def runs(arguments: Arguments) -> Iterator[str]:
    """List the runs of the task, oldest first."""
    from pytest_tfgrpo.cli.lookup import read_report
    from pytest_tfgrpo.core.text import number, table
    from pytest_tfgrpo.harness.report.cost import spent
    from pytest_tfgrpo.harness.report.gates import overall
    from pytest_tfgrpo.harness.run.journal_contents import list_runs

    project = project_of(arguments)
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
                spent(report["cost"]) if "cost" in report else "-",
            ]
        )
    if rows:
        yield from table(["run", "status", "gate", "eval mean", "gain", "cost"], rows, left=3)
    else:
        yield f"no runs of task {project.task_id!r} under {project.out}; run pytest --tfgrpo"
