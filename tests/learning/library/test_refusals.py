"""What is shown and kept of an operation that was refused."""

from dataclasses import replace

from support.builders import make_experience

from pytest_tfgrpo.core.lessons import Operation
from pytest_tfgrpo.learning.library.refusals import refusal_of

SECRET, SHOWN = "password=hunter2hunter2", "password=[redacted:named]"


def test_no_text_of_a_refusal_shows_a_secret() -> None:
    lesson = make_experience(summary32=f"Say {SECRET}")
    (stat,) = lesson.tool_stats
    lesson = replace(lesson, tool_stats=(stat, replace(stat, tool=SECRET)))
    operation = Operation(kind="merge", experience=lesson, targets=("a", SECRET), reason=f"said {SECRET}")
    found = refusal_of(operation, "unknown_id", f"{SECRET!r} is no id")
    assert found.operation.experience is not None
    assert found.operation.experience.summary32 == f"Say {SHOWN}"
    assert [one.tool for one in found.operation.experience.tool_stats] == [stat.tool, SHOWN]
    assert (found.operation.targets, found.operation.reason) == (("a", SHOWN), f"said {SHOWN}")
    assert (found.code, found.reason) == ("unknown_id", f"'{SHOWN}' is no id")
