"""The account of attribution, in the report and in the terminal."""

from pathlib import Path
from typing import Any

import pytest
from support.builders import PACK_STAMP, make_experience, make_exposures
from support.jobs import ScriptedActor, make_job, run_job, suite, three_or_not

from pytest_tfgrpo.core.records import Run
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.features import effects_of_lessons
from pytest_tfgrpo.learning.attribution.exposures import content_key
from pytest_tfgrpo.learning.attribution.reported import attribution_report
from pytest_tfgrpo.learning.library.library import of
from pytest_tfgrpo.report.attribution import attribution_lines
from pytest_tfgrpo.report.value import build

GOOD, BAD, NEW = (
    make_experience(n, summary32=f"For letter words use {word}.", stamp_signature=PACK_STAMP)
    for n, word in enumerate(("alpha", "bravo", "carol"))
)


class Nothing:
    name = "nothing"
    identity: dict[str, Any] = {}  # noqa: RUF012 - as the protocol has it

    async def propose(self, _context: Any) -> Any:
        from pytest_tfgrpo.protocols import Proposal

        return Proposal()


def made(tmp_path: Path, **changes: Any) -> Run:
    rows = make_exposures({content_key(GOOD): 0.3, content_key(BAD): -0.4}, run_id="run0", base=0.5)
    job = make_job(
        ScriptedActor(three_or_not),
        tmp_path,
        **{
            "scenarios": suite(train=5),
            "epochs": 2,
            "job_library": of([GOOD, BAD, NEW]),
            "job_optimizer": Nothing(),
            "job_preflight": {"exposures": to_wire(rows)},
            **changes,
        },
    )
    return run_job(job)[0]


def test_every_lesson_in_force_or_retired_has_its_effect(tmp_path: Path) -> None:
    value = attribution_report(made(tmp_path))
    assert value is not None
    told = {v["text"]: (v["verdict"], v["in_force"]) for v in value["lessons"]}
    assert told == {
        GOOD.summary32: ("helpful", True),
        NEW.summary32: ("not_estimable", True),
        BAD.summary32: ("harmful", False),
    }
    assert (value["lesson_dropout"], value["groups"], value["earlier_groups"]) == (0.2, 5, 400)
    assert value["estimated"] == 2
    (good,) = [v for v in value["lessons"] if v["text"] == GOOD.summary32]
    assert good["included"] + good["left_out"] == 405
    assert good["ci95"][0] < good["effect"] < good["ci95"][1]
    (bad,) = [v for v in value["lessons"] if v["text"] == BAD.summary32]
    assert bad["effect"] < bad["shrunken"] < good["shrunken"] < good["effect"]


def test_without_chance_there_is_no_account(tmp_path: Path) -> None:
    value = effects_of_lessons(made(tmp_path, lesson_dropout=0.0))
    assert value is None
    assert attribution_lines(value, 80, every=True) == []


def test_the_report_with_it_fits_its_schema(tmp_path: Path) -> None:
    assert violations("report", build(made(tmp_path), None)) == []


def test_the_terminal_has_one_sentence_and_a_table_when_asked(tmp_path: Path) -> None:
    value = attribution_report(made(tmp_path))
    assert " ".join(" ".join(attribution_lines(value, 80, every=False)).split()) == (
        "lessons' effect 1 harmful, 1 helpful, 1 not yet known; each left out of 20% of the "
        "training groups at random; harmful and retired: 1"
    )
    table = attribution_lines(value, 80, every=True)
    assert len(attribution_lines(value, 80, every=False)) <= 3
    assert max(map(len, table)) <= 80
    told = " ".join(" ".join(table).split())
    assert "removed: do text: For" in told
    assert "without, drawn towards the mean of the lessons; alone, with its interval" in told
    assert value is not None
    (good,) = [v for v in value["lessons"] if v["text"] == GOOD.summary32]
    assert f"{good['shrunken']:+.3f}; alone {good['effect']:+.3f} (" in told


@pytest.mark.parametrize("text", ["::error::x", "\x1b[2Jgone", "a\nb"])
def test_a_hostile_text_is_printed_as_data(tmp_path: Path, text: str) -> None:
    value = attribution_report(made(tmp_path))
    assert value is not None
    value["lessons"][0]["text"] = text
    value["unread"] = [text]
    for row in attribution_lines(value, 80, every=True):
        assert row.isprintable()
        assert not row.lstrip().startswith("::")
