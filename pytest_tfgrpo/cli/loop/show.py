"""The command ``tfgrpo loop show``: one trajectory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from pytest_tfgrpo.cli.loop.open_loop import current_view, existing_bus, operator_name
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.production.report.figures import find_shown
from pytest_tfgrpo.production.report.trajectory_lines import LIMIT, shown_lines
from pytest_tfgrpo.production.trust.audit_records import note, read_ref


def show(arguments: Arguments) -> Iterator[str]:
    """Print a trajectory: turns, feedback, rewards."""
    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        found = find_shown(view, bus, arguments.id)
        ref = read_ref(found.trajectory["trajectory_id"])
        note(bus, "read", "trajectory", actor=operator_name(), ref=ref)
    yield from (
        [json.dumps(asdict(found), indent=1)]
        if arguments.json
        else shown_lines(found, None if arguments.full else LIMIT)
    )
