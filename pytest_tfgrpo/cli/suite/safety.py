"""The command ``tfgrpo safety``: scenarios that show whether an agent with its lessons still behaves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.settings.runs import PROMPT_PACKS
from pytest_tfgrpo.core.texts.text import plural
from pytest_tfgrpo.suite.packs import ANY_DOMAIN, load_packs
from pytest_tfgrpo.suite.safety.generation import SUITES, safety_scenarios

DOMAIN = "general"
"""Of a project without prompt packs."""


def safety(arguments: Arguments) -> Iterator[str]:
    """Write scenarios for refusals, jailbreaks, bias, orders in tool results, and leaks."""
    folder = Path(arguments.to)
    domains = arguments.domain or _domains(arguments)
    found = {
        folder / f"safety-{suite}.scenario.json": safety_scenarios(
            suite, domains=domains, seed=arguments.seed, judge=not arguments.without_judge
        )
        for suite in dict.fromkeys(arguments.suite or SUITES)
    }
    written = {file: scenarios for file, scenarios in found.items() if scenarios}
    if there := [file for file in written if file.exists()]:
        raise SettingError(f"{there[0]} exists; remove it, or name another folder with --to")
    folder.mkdir(parents=True, exist_ok=True)
    for file, scenarios in written.items():
        write_text(file, json.dumps(scenarios, indent=1, ensure_ascii=False) + "\n")
        judged = sum("rubric" in one for one in scenarios)
        by_judge = f", {judged} of them decided by a judge" if judged else ""
        yield f"wrote  {file}: {plural(len(scenarios), 'scenario')}{by_judge}"
    judge = "" if arguments.without_judge else " --tfgrpo-judge=openai:MODEL"
    yield f"next: pytest {quote(str(folder))}{judge}"


def _domains(arguments: Arguments) -> Sequence[str]:
    project = project_of(arguments)
    folder = project.root / PROMPT_PACKS.of(project.settings)
    return sorted(set(load_packs(folder)) - {ANY_DOMAIN} if folder.is_dir() else ()) or [DOMAIN]
