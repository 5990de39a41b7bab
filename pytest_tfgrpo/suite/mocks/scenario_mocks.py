"""The mocks of a scenario: what stands in for its tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from pytest_tfgrpo.core.scenarios import MockCase, MockKind, ToolMock
from pytest_tfgrpo.core.wire.code_stamp import code_sha256
from pytest_tfgrpo.core.wire.schema import Violation
from pytest_tfgrpo.core.wire.stamp import canonical
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.paths import confined
from pytest_tfgrpo.scoring.checks.protocol import BadParam
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.mocks.recorded_calls import plain, read_calls
from pytest_tfgrpo.suite.world_steps import require_target

FILE_MAX_BYTES = 100_000_000
KINDS: tuple[MockKind, ...] = get_args(MockKind)


def read_mocks(
    data: Mapping[str, Json], scenario: str, folder: Path, found: list[Violation]
) -> tuple[ToolMock, ...]:
    """Return the mocks that `data` describes, valid under the schema; adds what is wrong to `found`."""
    mocks = []
    for tool, written in data.items():
        listed = written if isinstance(written, list) else [written]
        cases = []
        for place, one in enumerate(listed):
            try:
                cases.append(_case(tool, one, scenario, folder))
            except (ValueError, OSError) as error:
                key = (error.key,) if isinstance(error, BadParam) else ()
                path = ("mocks", tool, *((place,) if isinstance(written, list) else ()), *key)
                found.append(Violation(path, str(error)))
        found += [Violation(("mocks", tool, place), why) for place, why in _unreached(listed)]
        mocks.append(ToolMock(tool=tool, cases=tuple(cases)))
    return tuple(mocks)


def _unreached(cases: Sequence[Mapping[str, Json]]) -> Iterator[tuple[int, str]]:
    """Yield the place of each case that an earlier one leaves no call, and why."""
    earlier: dict[frozenset[str], dict[tuple[bytes, ...], int]] = {}
    """Places of cases by which arguments they look at, and for what values."""
    for place, case in enumerate(cases):
        when = dict(_leaves(case.get("when", {})))
        shadows = (
            found
            for names, places in earlier.items()
            if names <= when.keys()
            and (found := places.get(tuple(when[name] for name in sorted(names)))) is not None
        )
        if (first := next(shadows, None)) is not None:
            yield place, f"no call reaches this case, as case {first} fits all of its; put it before that"
        values = tuple(when[name] for name in sorted(when))
        earlier.setdefault(frozenset(when), {}).setdefault(values, place)


def _leaves(when: Mapping[str, Json], above: str = "") -> Iterator[tuple[str, bytes]]:
    """Yield what `when` looks at and for what, objects inside by their keys."""
    for key, value in when.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{above}{key}\0")
        else:
            yield above + key, canonical(plain(value))


def _case(tool: str, data: Mapping[str, Json], scenario: str, folder: Path) -> MockCase:
    given = [kind for kind in KINDS if kind in data]
    if len(given) != 1:
        raise ValueError(f"a mock has one of {', '.join(KINDS)}, not {' and '.join(given) or 'none'}")
    kind, when = given[0], data.get("when") or None
    value, file, sha256 = data[kind], "", ""
    if kind == "python":
        require_target(value, folder)
        sha256 = code_sha256(value)
    elif kind == "recorded":
        file = value
        try:
            value = read_calls(confined(folder, file, FILE_MAX_BYTES), scenario, tool)
        except Refused as error:
            raise BadParam(kind, f"{file!r}, line {error.problem.line}: {error}") from error
        except (ValueError, OSError) as error:
            raise BadParam(kind, str(error)) from error
    return MockCase(kind=kind, value=None if kind == "real" else value, when=when, file=file, sha256=sha256)
