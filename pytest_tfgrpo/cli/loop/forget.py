"""The command ``tfgrpo loop forget``: overwrite what is stored of somebody."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_tfgrpo.cli.loop.loop_roles import owner_name
from pytest_tfgrpo.cli.loop.observe.sink_roles import forget_in_sinks
from pytest_tfgrpo.cli.loop.open_loop import current_view, existing_bus, open_scrubber, operator_name
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import SettingError, StoreError
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.production.forget import forget as overwrite
from pytest_tfgrpo.production.report.figure_lines import labelled, streams_text
from pytest_tfgrpo.production.training.forgotten import forget_learning
from pytest_tfgrpo.production.training.versions.artifacts import open_artifacts
from pytest_tfgrpo.production.training.versions.policies import Policies


def forget(arguments: Arguments) -> Iterator[str]:
    """Overwrite all that is stored of a user or session."""
    if not (arguments.session or arguments.user).strip():
        raise SettingError("name the session or user to forget; an empty id is nobody's")
    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        found = overwrite(
            bus,
            view,
            scrubber=open_scrubber(config),
            actor=arguments.actor or operator_name(),
            session=arguments.session,
            user=arguments.user,
        )
        learned = forget_learning(Policies(bus, open_artifacts(config.store)), config.jobs_path, found.ids)
        done, waiting = forget_in_sinks(bus, config, owner_name())
    yield from labelled("forgot", f"{found.whose} {found.ref}: {streams_text(found.removed)}")
    if found.shared:
        said = f"{found.shared:,} sessions have other users; what names nobody there stays (see --session)"
        yield from labelled("shared", said)
    if learned.jobs:
        yield from labelled("jobs", f"evidence and runs of {len(learned.jobs)} training jobs are removed")
    for lesson, versions in learned.lessons:
        said = f"{lesson.lesson} of {', '.join(versions)} rests on it: {lesson.text}"
        yield from labelled("lesson", said)
    for checkpoint, versions in learned.weights:
        yield from labelled("weights", f"{line(checkpoint)} of {', '.join(versions)} were trained on it")
    for name in done:
        yield from labelled(name, "its rows are removed")
    if waiting:
        raise StoreError(
            "\n".join(f"{name} still has rows of {found.ref}: {why}" for name, why in waiting.items())
            + "\na service removes them once it can; `tfgrpo loop status` says until when they wait"
        )
