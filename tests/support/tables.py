"""Tables of rows as one test each: an item of pytest costs more than a row that calls a function or two."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Sequence
from functools import wraps
from typing import Any

import pytest


class TableTest(pytest.Function):
    """All rows of a parametrized test that uses nothing but its parameters."""

    rows: Sequence[pytest.Function]

    @classmethod
    def of(cls, rows: Sequence[pytest.Function]) -> TableTest:
        first = rows[0]
        table: TableTest = cls.from_parent(first.parent, name=first.originalname, callobj=each(rows))
        table.rows = rows
        return table


class Tables:
    """Makes one test of each table of the default tier, where all of it runs in the order of its files."""

    @pytest.hookimpl(wrapper=True)
    def pytest_pycollect_makeitem(self) -> Generator[None, Any, Any]:
        made = yield
        if isinstance(made, list) and len(made) > 1 and all(map(is_row, made)):
            return [TableTest.of(made)]
        return made


def is_row(item: pytest.Item) -> bool:
    """Whether a test needs its parameters alone: no fixture, mark or loop of its own."""
    if type(item) is not pytest.Function or not hasattr(item, "callspec"):
        return False
    marks = list(item.iter_markers())
    if any(mark.name != "parametrize" or "indirect" in mark.kwargs for mark in marks):
        return False
    given: set[str] = set()
    for mark in marks:
        names = mark.args[0]
        given.update(names.replace(",", " ").split() if isinstance(names, str) else names)
    fixtures = item._fixtureinfo.name2fixturedefs
    return (
        set(item._fixtureinfo.argnames) == item.callspec.params.keys() == given
        and all(fixtures[name][-1].scope == "session" for name in fixtures.keys() - given)
        and not inspect.iscoroutinefunction(item.obj)
        and not hasattr(item.obj, "is_hypothesis_test")
    )


def each(rows: Sequence[pytest.Function]) -> Callable[[], None]:
    """Return a function that calls all rows, and fails with all that failed, each named."""

    def run() -> None:
        __tracebackhide__ = True
        failed: list[BaseException] = []
        skipped: list[str] = []
        for row in rows:
            try:
                row.obj(**row.callspec.params)
            except pytest.skip.Exception as reason:
                skipped.append(f"{row.name}: {reason}")
            except (Exception, pytest.fail.Exception) as error:
                error.add_note(row.nodeid)
                failed.append(error)
        if len(failed) == 1:
            raise failed[0]
        if failed:
            raise BaseExceptionGroup(f"{len(failed)} of {len(rows)} rows", failed)
        if skipped:
            pytest.skip(f"{len(skipped)} of {len(rows)} rows, {'; '.join(skipped)}")

    run.__signature__ = inspect.Signature()  # type: ignore[attr-defined]
    return wraps(rows[0].function)(run)
