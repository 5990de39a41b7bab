"""GitHub Actions: annotations in a job's log, and its summary page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pytest_tfgrpo.core.report_blocks import GateBlock, Report
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.report.gates import named
from pytest_tfgrpo.report.markdown import summary

ACTIONS = "GITHUB_ACTIONS"
SUMMARY = "GITHUB_STEP_SUMMARY"
LEVELS = {"fail": "error", "inconclusive": "warning", "not_judged": "warning"}
WARNINGS = dict.fromkeys(LEVELS, "warning")
"""Levels of a gate that only warns."""
SHOWN = 300
"""Characters of an annotation."""


def notes(report: Report, environ: Mapping[str, str]) -> list[str]:
    """Return the commands for annotations of the gate and of regressions; none outside a job."""
    return list(_commands(report)) if environ.get(ACTIONS) == "true" else []


def summarise(report: Report, environ: Mapping[str, str]) -> list[str]:
    """Add a run to the summary page of the job, if there is one; returns a warning when that went wrong."""
    path = environ.get(SUMMARY)
    if not path or environ.get(ACTIONS) != "true":
        return []
    try:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(summary(report))
    except OSError as error:
        return [f"{SUMMARY}: cannot write the summary of the job: {error}"]
    return []


def _commands(report: Report) -> Iterator[str]:
    if report["gate"] is not None:
        yield from _gate_commands(report["gate"], "tfgrpo gate", LEVELS)
        for gate in named(report["gate"]):
            levels = LEVELS if gate["severity"] == "fail" else WARNINGS
            yield from _gate_commands(gate, f"tfgrpo gate {gate['name']}", levels)
    sources = {scenario["id"]: scenario["source"] for scenario in report["scenarios"]}
    for row in report["regressions"]:
        file, _, place = sources[row["scenario"]].partition("::")[0].rpartition(":")
        where = {"file": file, "line": place} if file and place.isdecimal() else {}
        text = f"{row['scenario']} fell from {row['before']:.3f} to {row['after']:.3f}"
        yield _command("warning", text, {**where, "title": "tfgrpo: worse than before"})


def _gate_commands(gate: GateBlock, title: str, levels: Mapping[str, str]) -> Iterator[str]:
    for result in gate["results"]:
        level = levels.get(result["outcome"])
        if level is not None:
            yield _command(level, f"{result['name']}: {result['message']}", {"title": title})


def _command(level: str, text: str, properties: Mapping[str, str]) -> str:
    """Return a command that no text can end or add to."""
    named = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{level} {named}::{_data(line(text, SHOWN))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
