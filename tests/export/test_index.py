"""The index keeps places, not records, and finds the groups that are read from the journal as a whole."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import make_scenario
from support.journals import JournalEvent, group_events, make_training_group, write_run

from pytest_tfgrpo.core.records import Group
from pytest_tfgrpo.export.index import open_index
from pytest_tfgrpo.runs.journal.journal_contents import load_run

SCENARIOS = [make_scenario(name) for name in ("a", "b")]
SIZE = 3
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("made", "cut short", "scored", "scored", "resumed")),
        st.integers(0, 1),
        st.integers(0, SIZE - 1),
        st.sampled_from((0.0, 0.5, 1.0, None)),
    ),
    max_size=25,
)


@settings(max_examples=50)
@given(steps=STEPS)
def test_groups_are_those_of_the_run_whatever_was_made_again(
    steps: list[tuple[str, int, int, float | None]],
) -> None:
    """A step may make a rollout (again), abandon one, score a group whose rollouts are there, or resume."""
    worth: list[dict[int, float | None]] = [dict.fromkeys(range(SIZE), 0.0), {}]
    events: list[JournalEvent] = group_events(made(0, worth[0]))[:-1]
    for what, group, place, reward in steps:
        if what == "made":
            worth[group][place] = reward
            events.append(
                group_events(made(group, {**dict.fromkeys(range(SIZE), 0.0), place: reward}))[place]
            )
        elif what == "cut short":
            worth[group].pop(place, None)
            events.append(("abandoned", group_events(made(group, dict.fromkeys(range(SIZE))))[place][1]))
        elif what == "resumed":
            events.append(("resume", {"versions": {}}))
        elif len(worth[group]) == SIZE:
            events.append(group_events(made(group, worth[group]))[-1])
    with TemporaryDirectory() as folder:
        write_run(Path(folder), events, SCENARIOS)
        wanted = {g.group_id: g for result in load_run(Path(folder)).phases for g in result.groups}
        with open_index(Path(folder)) as index:
            assert {id_: index.load(id_) for id_, _ in index.groups()} == wanted
            assert [scenario for _, scenario in index.groups()] == sorted(
                g.scenario_id for g in wanted.values()
            )


def made(group: int, worth: dict[int, float | None]) -> Group:
    return make_training_group([worth[place] for place in range(SIZE)], SCENARIOS[group])
