"""Language models that write texts, within the project's budget: statements, and patterns."""

from __future__ import annotations

import os

from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import Project, project_of
from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.core.keys.agent_list import listed_agents
from pytest_tfgrpo.core.settings.agents import ACTOR, MAX_TOKENS, MODELS, TEACHER
from pytest_tfgrpo.harvest.prompt.statement_model import StatementModel
from pytest_tfgrpo.llm.limits.budget import Budget, require_affordable
from pytest_tfgrpo.llm.models import Models
from pytest_tfgrpo.suite.models_file import load_models

MODEL = "openai:"


def open_statement_model(arguments: Arguments) -> StatementModel:
    """Return what rewrites prompts: the model that the settings name; raises SettingError, makes no call."""
    project = project_of(arguments)
    settings = project.settings
    spec = TEACHER.of(settings) or ("" if listed_agents(ACTOR.of(settings)) else ACTOR.of(settings)) or ""
    if not spec.startswith(MODEL):
        raise SettingError(
            f"--statement model needs a language model, and tfgrpo_teacher is {TEACHER.of(settings)!r};"
            f" set it to {MODEL}<model>"
        )
    return open_writer(project, spec)


def open_writer(project: Project, spec: str) -> StatementModel:
    """Return what writes texts by a model; raises SettingError, makes no call."""
    settings = project.settings
    file = MODELS.of(settings)
    models = Models(
        load_models(project.root / file if file else None),
        environ=os.environ,
        spending=Budget(settings.values),
        max_tokens=MAX_TOKENS.of(settings),
    )
    completer = models.open(spec)
    require_affordable([completer], settings.values)
    return StatementModel(completer, models)
