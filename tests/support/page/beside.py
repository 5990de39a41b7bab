"""What the tests of report/page/test_beside.py share with the slow ones."""

import base64
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pytest_tfgrpo.core.records import Group, Run
from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.value import build
from support.builders import make_frame
from support.sweeps import Credits, make_run

DATA = re.compile(r'<script type="(application/[^"]+)" id="([^"]+)">([^<]*)</script>')


def run(final: Mapping[str, Credits], run_id: str, frames: int = 1) -> Run:
    """Return a run with this final sweep; equal ids are equal tasks."""
    made = make_run(None, final, run_id=run_id)
    (phase,) = made.phases

    def framed(group: Group) -> Group:
        # no two outputs share anything, so that each takes room in the page
        outputs = [
            "".join(f"{hash((run_id, r.rollout_id, i, n)):x}" for n in range(40 * (frames > 1)))
            for r in group.rollouts
            for i in range(frames)
        ]
        parts = iter(outputs)
        rollouts = (
            replace(r, frames=tuple(make_frame(output=next(parts)) for _ in range(frames)))
            for r in group.rollouts
        )
        return replace(group, rollouts=tuple(rollouts))

    return replace(
        made,
        scenarios=tuple(replace(s, stamp=f"task of {s.id}") for s in made.scenarios),
        phases=(replace(phase, groups=tuple(map(framed, phase.groups))),),
    )


def data(after: Run, others: Sequence[Run]) -> tuple[dict[str, Any], dict[int, dict[str, Any]]]:
    """Return the index of a comparison's page, and its unpacked chunks."""
    page = html(build(after, None), after, versus(others[0], after, others[1:]), others)
    found = {id_: (kind, text) for kind, id_, text in DATA.findall(page)}
    chunks = {
        int(id_.removeprefix("chunk-")): json.loads(gzip.decompress(base64.b64decode(text)))
        for id_, (_, text) in found.items()
        if id_.startswith("chunk-")
    }
    return json.loads(found["index"][1]), chunks
