"""JSON lines, read one by one from the open file: the same scenarios and errors as from its whole text."""

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite import scenario_files
from pytest_tfgrpo.suite.scenario_files import load_scenarios, scenarios_in

NAME = "x.scenarios.jsonl"


def line(id_: str, **more: object) -> bytes:
    checks = [{"kind": "exact", "value": "3"}]
    return json.dumps({"id": id_, "prompt": "p?", "checks": checks, **more}, ensure_ascii=False).encode()


LINES = st.one_of(
    st.sampled_from("abcdefgh").map(line),
    st.sampled_from(
        [
            b"",
            b" \t",
            b"{",
            b"[1, 2]",
            b'{"id": NaN}',
            b'{"id": "\\ud800"}',
            line("i", prompt="a\u2028b\x85c\v"),
            line("j", prompt="\ufeffq"),
            line("k", prmpt="misspelled"),
            line("l") + b" x",
        ]
    ),
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


def outcome(call: Callable[[], tuple[Scenario, ...]]) -> tuple[Scenario, ...] | str:
    try:
        return call()
    except ScenarioError as error:
        return str(error)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(LINES, ENDS)), mark=st.sampled_from([b"", b"\xef\xbb\xbf"]), last=st.booleans()
)
def test_lines_mean_what_they_mean_in_the_whole_text(
    tmp_path: Path, rows: list[tuple[bytes, bytes]], mark: bytes, last: bool
) -> None:
    data = b"".join(part for row in rows for part in row)
    data = data if last or not rows else data.removesuffix(rows[-1][1])
    path = tmp_path / NAME
    path.write_bytes(mark + data)
    read = outcome(lambda: load_scenarios(path, root=tmp_path, kinds=KINDS))
    assert read == outcome(lambda: scenarios_in(data.decode(), path, root=tmp_path, kinds=KINDS))


@pytest.mark.parametrize("bad", [b"\xff", b"\xe2\x82", b"\xed\xa0\x80"])
def test_a_line_that_is_not_utf_8_is_named_after_what_is_wrong_before_it(
    refusal: Callable[..., list[str]], bad: bytes
) -> None:
    told = f"{NAME}:3: #: not UTF-8: byte 0x{bad[0]:02x}; save the file as UTF-8"
    assert refusal(NAME, line("a") + b"\n\n" + bad + b"\n" + line("b")) == [told]
    first, second = refusal(NAME, b"\xef\xbb\xbf{\n\n" + bad)
    assert first.startswith(f"{NAME}:1: #: not JSON: Expecting property name")
    assert second == told


def test_only_a_line_has_a_largest_size_and_not_the_file(
    load: Callable[..., tuple[Scenario, ...]],
    refusal: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = line("a")
    monkeypatch.setattr(scenario_files, "FILE_MAX_BYTES", len(row))
    monkeypatch.setattr(scenario_files, "LINE_MAX_BYTES", len(row))
    rows = b"\n".join([row, line("b"), line("c")])
    assert [s.id for s in load(NAME, rows)] == ["a", "b", "c"]
    assert refusal(NAME, rows + b"\n" + line("dd")) == [
        f"{NAME}:4: #: the line is longer than {len(row)} bytes"
    ]
    assert "larger than" in refusal("x.scenarios.json", b"[" + row + b"]")[0]


def test_a_file_is_not_held_while_its_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / NAME
    path.write_bytes((b" " * 9_999 + b"\n") * 2_000 + line("a"))
    tracemalloc.start()
    try:
        (scenario,) = load_scenarios(path, root=tmp_path, kinds=KINDS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert scenario.source == f"{NAME}:2001"
    assert peak < 1_000_000  # of 20 MB


def test_neither_a_pipe_nor_a_device_is_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.scenarios.jsonl")
    (tmp_path / "zero.scenarios.jsonl").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(
            ScenarioError, match=rf"^{name}\.\w+\.jsonl:1: #: cannot be read: it is not a reg"
        ):
            load_scenarios(tmp_path / f"{name}.scenarios.jsonl", root=tmp_path, kinds=KINDS)


def test_a_file_without_a_line_end_is_read_no_further_than_a_line_may_be(tmp_path: Path) -> None:
    with (tmp_path / NAME).open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(ScenarioError, match=r":1: #: the line is longer than 64000000 bytes"):
        load_scenarios(tmp_path / NAME, root=tmp_path, kinds=KINDS)
