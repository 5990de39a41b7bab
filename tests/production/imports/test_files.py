"""Files of several tools go in trace by trace, with the spans around others after those."""

import gzip
import json
from pathlib import Path

import pytest
from support.otlp_spans import agent, span, write_lines
from support.otlp_spans import line as otlp_line

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.production.imports import files
from pytest_tfgrpo.production.imports.files import import_files
from pytest_tfgrpo.production.imports.trace_order import TraceOrder
from pytest_tfgrpo.telemetry.traces.turns import RefusedSpan

TRACES = ["0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"]


class Kept:
    """An intake that accepts everything but what is refused."""

    opted_out = 0

    def __init__(self):
        self.calls = []

    def spans(self, found):
        self.calls.append(list(found))
        self.accepted = sum(not isinstance(one, RefusedSpan) for one in found)
        return self

    @property
    def taken(self):
        return [one for call in self.calls for one in call if not isinstance(one, RefusedSpan)]


def row(trace, number, parent="", at=0, **further):
    time = f"2024-05-29 13:{at:02d}:00.000000"
    return {
        "id": f"b7ad6b716920333{number}", "trace_id": TRACES[trace], "type": "SPAN",
        "name": f"{trace}{number}",
        "parent_observation_id": f"b7ad6b716920333{parent}" if parent else "",
        "start_time": time, "end_time": time, **further,
    }  # fmt: skip


def score(trace, **further):
    return {
        "id": "s", "trace_id": TRACES[trace], "name": "good", "value": 1, "data_type": "BOOLEAN",
        "timestamp": "2024-05-30 00:00:00", **further,
    }  # fmt: skip


def export(folder: Path, rows, scores=()):
    for name, found in (("observations_v2", rows), ("scores", scores), ("manifests", [{"files": []}])):
        (folder / name).mkdir(parents=True)
        lines = "\n".join(map(json.dumps, found)).encode()
        (folder / name / "1.jsonl.gz").write_bytes(gzip.compress(lines))


def test_an_export_goes_in_by_traces_with_roots_last(tmp_path):
    rows = [
        row(1, 1, at=2),
        row(0, 1, at=1),
        row(0, 2, "1", at=1),
        row(0, 3, "2", at=1),
        row(1, 2, "1", at=3),
    ]
    export(tmp_path, rows, [score(0), score(1, id="t", value=7)])
    kept = Kept()
    result = import_files([tmp_path], kept)
    assert [span.name for span in kept.taken] == ["02", "03", "good", "01", "12", "11"]
    assert result.lines() == [
        "2 files: 5 spans and 1 scores of 2 traces",
        "accepted: 6",
        "opted out: 0",
        "refused: 1 outcome_out_of_range",
    ]


def test_the_parts_of_a_trace_come_together_from_several_files(tmp_path):
    for name, found in (("b.json", [row(0, 1), row(1, 1)]), ("a.json", [row(0, 2, "1"), row(0, 2, "1")])):
        (tmp_path / name).write_text(json.dumps(found))
    kept = Kept()
    result = import_files([tmp_path / "b.json", tmp_path / "a.json"], kept)
    assert [span.name for span in kept.taken] == ["02", "01", "11"]
    assert (result.repeated, result.accepted) == (1, 3)
    again = Kept()
    import_files([tmp_path / "a.json", tmp_path / "b.json"], again)
    assert again.taken == kept.taken


def test_what_never_ends_goes_in_after_the_rest(tmp_path):
    never = "9999-12-31T23:59:59Z"
    export(tmp_path, [row(1, 1) | {"start_time": never, "end_time": never}, row(0, 1)])
    kept = Kept()
    assert import_files([tmp_path], kept).spans == 2
    assert [span.name for span in kept.taken] == ["01", "11"]


def test_spans_of_other_services_come_before_those_of_the_root(tmp_path):
    rows = [
        row(0, 1, environment="front"),
        row(0, 2, "1", environment="front"),
        row(0, 3, "2", environment="back"),
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    kept = Kept()
    import_files([tmp_path], kept)
    assert [span.name for span in kept.taken] == ["03", "02", "01"]
    assert kept.taken[1].resource is kept.taken[2].resource


def test_otlp_lines_are_told_from_rows_by_what_they_hold(tmp_path):
    write_lines(tmp_path / "a.jsonl", otlp_line(agent(1), span(2, "chat")), "{torn")
    (tmp_path / "b.jsonl").write_text(json.dumps(row(0, 1, input='{"resourceSpans": []}')))
    kept = Kept()
    result = import_files([tmp_path], kept)
    assert (result.spans, result.traces, result.refused) == (3, 2, {"not_json": 1})
    (refused,) = [one for call in kept.calls for one in call if isinstance(one, RefusedSpan)]
    assert (refused.reason.value, refused.place.endswith("a.jsonl:2")) == ("not_json", True)
    assert [one.key[1][-1] for one in kept.taken] == ["1", "2", "1"]


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".json.gz", ".jsonl.gz"])
def test_a_folder_is_read_with_files_of_each_form(tmp_path, suffix):
    data = json.dumps(row(0, 1)).encode()
    (tmp_path / f"a{suffix}").write_bytes(gzip.compress(data) if suffix.endswith(".gz") else data)
    (tmp_path / f"folder{suffix}").mkdir()
    (tmp_path / "b.txt").write_text("no rows")
    result = import_files([tmp_path], Kept())
    assert (result.files, result.spans) == (1, 1)


def test_every_batch_goes_in_once_and_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BATCH", 2)
    rows = [row(number % 2, number // 2 + 1) for number in range(6)]
    bad = [score(0, id=str(number), value=7) for number in range(3)]
    export(tmp_path, [*rows, {"id": "x"}], [*bad, score(0), score(1, id="t")])
    kept = Kept()
    kept.opted_out = 1
    result = import_files([tmp_path], kept)
    assert [len(call) for call in kept.calls] == [2, 2, 4, 4]
    assert sum(isinstance(one, RefusedSpan) for call in kept.calls for one in call) == 4
    assert result.lines() == [
        "2 files: 6 spans and 2 scores of 2 traces",
        "accepted: 8",
        "opted out: 4",
        "refused: 1 malformed, 3 outcome_out_of_range",
    ]


def test_what_is_repeated_is_said_and_nothing_refused_is_0(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps([row(0, 1), row(0, 1)]))
    lines = import_files([tmp_path], Kept()).lines()
    assert lines[1:] == ["repeated in the files: 1", "accepted: 1", "opted out: 0", "refused: 0"]


@pytest.mark.parametrize("kind", ["Spans", "Logs", "Metrics"])
def test_export_requests_of_each_kind_are_no_rows(tmp_path, kind):
    (tmp_path / "a.jsonl").write_text(json.dumps({f"resource{kind}": []}))
    assert import_files([tmp_path], Kept()).refused == {}


def test_a_span_too_deep_to_be_written_is_refused_with_its_place(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text(json.dumps([row(0, 1), row(0, 2)]))
    add = TraceOrder.add

    def deep(order, span):
        if span.name == "01":
            raise RecursionError
        add(order, span)

    monkeypatch.setattr(TraceOrder, "add", deep)
    kept = Kept()
    assert import_files([tmp_path], kept).refused == {"malformed": 1}
    (refused,) = [one for call in kept.calls for one in call if isinstance(one, RefusedSpan)]
    assert (refused.place, [one.name for one in kept.taken]) == ("a.json[1]", ["02"])


def test_what_cannot_be_read_is_an_error_before_anything_goes_in(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps(row(0, 1)))
    (tmp_path / "b.parquet").write_bytes(b"PAR1")
    (tmp_path / "d.csv").write_bytes(b"a,b")
    (tmp_path / "c.jsonl.gz").write_bytes(b"no gzip")
    (tmp_path / "empty").mkdir()
    kept = Kept()
    for name, message in (
        ("b.parquet", "b.parquet: is not read; export as JSON or JSONL"),
        ("d.csv", "d.csv: is not read; export as JSON or JSONL"),
        ("c.jsonl.gz", "cannot be read"),
        ("nowhere", "no such file"),
        ("empty", "no file in it ends with"),
    ):
        with pytest.raises(SettingError, match=message):
            import_files([tmp_path / "a.jsonl", tmp_path / name], kept)
    with pytest.raises(SettingError, match="stars: 5 is not below 1"):
        import_files([tmp_path / "a.jsonl"], kept, {"stars": (5, 1)})
    with pytest.raises(SettingError, match="stars: 1 is not below 1"):
        import_files([tmp_path / "a.jsonl"], kept, {"good": (0, 1), "stars": (1, 1)})
    assert kept.calls == []


def test_a_file_that_is_cut_short_gives_what_is_there(tmp_path):
    whole = gzip.compress("\n".join(json.dumps(row(0, 1) | {"id": str(n)}) for n in range(2000)).encode())
    (tmp_path / "a.jsonl.gz").write_bytes(whole[: len(whole) // 2])
    kept = Kept()
    result = import_files([tmp_path], kept)
    assert 0 < result.accepted < 2000
    assert result.refused == {"not_json": 1}
