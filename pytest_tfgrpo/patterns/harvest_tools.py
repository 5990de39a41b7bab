"""The tools of a real harvest: recipes, environments, runners, prompts and the search for secrets."""

from __future__ import annotations

import re
from pathlib import Path

from pytest_tfgrpo.harness.sandbox.environments import BuiltEnvironment
from pytest_tfgrpo.harness.scoring.runners.protocol import SuiteCommand, SuiteRequest, SuiteRun
from pytest_tfgrpo.patterns.fixes import FixCandidate, RecipePart, Statement
from pytest_tfgrpo.patterns.harvest_plan import EnvironmentResult, HarvestTools

DOMAIN = 60
"""Characters of a domain at most."""


def open_tools() -> HarvestTools:
    """Return the tools of a harvest."""
    return HarvestTools(
        recipes=_recipes,
        environment=lambda *_: EnvironmentResult(),
        run=run_tests,
        statement=_statement,
        secrets=lambda *_: (),
        secrets_in_text=lambda _: (),
    )


def run_tests(request: SuiteRequest) -> SuiteRun:
    """Run tests with the runner that a request names."""
    from pytest_tfgrpo.harness.scoring.runners.registry import run_suite

    return run_suite(request)


def find_environment(suite: Path, stamp: str) -> BuiltEnvironment:
    """Return an environment that was built before; raises TfgrpoError that says how to build it."""
    from pytest_tfgrpo.harness.sandbox.environments import find_built

    return find_built(suite, stamp)


def domain_of(repository: Path) -> str:
    """Return the domain of a repository's scenarios: the name of its folder, as an id may be."""
    name = repository.resolve().name.removesuffix(".git")
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:DOMAIN] or "repository"


def _recipes(*_: object) -> tuple[RecipePart, ...]:
    command = SuiteCommand(runner="pytest")
    return (RecipePart(folder=".", command=command, python=None, dependencies=("pytest",)),)


def _statement(candidate: FixCandidate, *_: object) -> Statement:
    return Statement(text=candidate.change.message, source="commit message")
