"""The command ``tfgrpo loop evidence``: a dataset cut by hand."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.loop.open_loop import current_view, existing_bus, operator_name
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.production.report.dataset_lines import dataset_lines
from pytest_tfgrpo.production.training.dataset.cut import cut
from pytest_tfgrpo.production.training.dataset.request import DatasetRequest
from pytest_tfgrpo.production.trust.audit_records import note


def evidence(arguments: Arguments) -> Iterator[str]:
    """Write attempts of production to a file that a run learns from."""
    path: Path = arguments.to
    if path.exists():
        raise StoreError(f"{path} exists; name another file, or remove it")
    asked = DatasetRequest(
        min_reward=arguments.min_reward,
        start=arguments.since,
        sample_size=arguments.sample_size,
        seed=arguments.seed,
    )
    with existing_bus(arguments.config) as (config, bus), current_view(config, bus) as view:
        note(bus, "export", "evidence", actor=operator_name(), asked=to_wire(asked))
        header = cut(bus, view, asked, path, domains=config.settings.training.domains)
    yield from dataset_lines(header)
    if header.counts["groups"]:
        yield f"wrote      {path}"
        yield f"next: pytest --tfgrpo --tfgrpo-evidence {shlex.quote(str(path))}"
    else:
        path.unlink()
        yield "wrote      nothing: no task has good and bad attempts that fit"
        yield "next: tfgrpo loop report"
