"""Rows are read one by one, of lines and of an array, whatever the pieces are that a file comes in."""

import io
import json

import pytest

from pytest_tfgrpo.production.imports import json_rows as module
from pytest_tfgrpo.production.imports.json_rows import json_rows
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan, RefusedTrace

ROWS = [{"a": "ö€😀" * 3, "b": [1, {"c": "]},["}]}, 12345, "text", None, -1.5e3]


@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_is_read_in_pieces_of_any_size(monkeypatch, piece, indent):
    monkeypatch.setattr(module, "_PIECE", piece)
    data = " \n" + json.dumps(ROWS, ensure_ascii=False, indent=indent) + "\n"
    found = list(json_rows(io.BytesIO(data.encode()), "f"))
    assert [row for _, row in found] == ROWS
    assert [place for place, _ in found] == [f"f[{number}]" for number in range(1, 6)]


def test_lines_have_their_numbers_and_torn_ones_are_refused():
    data = b'{"a": 1}\n\n{"a": NaN}\n\xff\n[1]\n{"a'
    refused = [RefusedSpan(RefusedTrace.NOT_JSON, f"f:{number}") for number in (3, 4, 6)]
    assert list(json_rows(io.BytesIO(data), "f")) == [
        ("f:1", {"a": 1}), *refused[:2], ("f:5", [1]), refused[2]
    ]  # fmt: skip


@pytest.mark.parametrize(
    "data", [b"[1, 2", b"[1, 2,", b"[1, 2, {", b'[1, 2, "\xff"x', b"[1, 2, NaN]", b"[1, 2" + b", [" * 5000]
)
def test_a_torn_array_gives_what_is_before_the_tear(data):
    found = list(json_rows(io.BytesIO(data), "f"))
    assert found[:1] == [("f[1]", 1)]
    assert found[-1] == RefusedSpan(RefusedTrace.NOT_JSON, f"f[{len(found)}]")


@pytest.mark.parametrize("data", [b'{"a": "' + b"x" * 100 + b'"}\n{"a": 1}', b'["' + b"x" * 100 + b'", 1]'])
def test_a_row_beyond_the_limit_is_refused(monkeypatch, data):
    monkeypatch.setattr(module, "ROW_BYTES", 50)
    monkeypatch.setattr(module, "_PIECE", 8)
    found = list(json_rows(io.BytesIO(data), "f"))
    assert found[0].reason is RefusedTrace.TOO_LARGE


def test_an_empty_file_has_no_rows():
    for data in (b"", b"\n\n", b"[]", b" [ ] "):
        assert list(json_rows(io.BytesIO(data), "f")) == []


def test_blanks_before_an_array_are_none_of_it():
    assert list(json_rows(io.BytesIO(b" \r\n\t [1]"), "f")) == [("f[1]", 1)]


def test_the_limit_is_of_each_row_and_not_of_all(monkeypatch):
    monkeypatch.setattr(module, "ROW_BYTES", 20)
    monkeypatch.setattr(module, "_PIECE", 64)
    rows = ["x" * 15] * 6
    assert [row for _, row in json_rows(io.BytesIO(json.dumps(rows).encode()), "f")] == rows


def test_after_a_line_beyond_the_limit_the_next_has_its_number(monkeypatch):
    monkeypatch.setattr(module, "ROW_BYTES", 10)
    data = b'1\n["' + b"x" * 30 + b'"]\n3\n"' + b"x" * 7 + b'"\n'
    too_large = RefusedSpan(RefusedTrace.TOO_LARGE, "f:2")
    assert list(json_rows(io.BytesIO(data), "f")) == [("f:1", 1), too_large, ("f:3", 3), ("f:4", "x" * 7)]
