import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.sweeps import make_run, rated

from pytest_tfgrpo.core.errors import BaselineError
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.wire import to_wire
from pytest_tfgrpo.gate.baseline import describe, from_run, load, locate, recordings_of, save

RUN = make_run({"a": [0, 0]}, {"b": [1, 0.5, None], "a": [1, 1, 1]})


def test_a_baseline_holds_the_sums_of_the_final_sweep() -> None:
    baseline = from_run(RUN, "main")
    assert list(baseline.scenarios) == ["a", "b"]
    b = baseline.scenarios["b"]
    assert (b.n, b.sum, b.sum_sq, b.errors) == (2, 1.5, 1.25, 1)
    assert (baseline.actor, baseline.temperature, baseline.library) == ("offline", 0.3, "c" * 64)


def test_what_is_saved_is_loaded_again(tmp_path: Path) -> None:
    path = locate("main", tmp_path)
    save(path, from_run(RUN, "main"))
    assert load(path) == from_run(RUN, "main")
    assert [p.name for p in path.parent.iterdir()] == ["main.json"]


def test_the_file_has_one_line_per_scenario(tmp_path: Path) -> None:
    save(tmp_path / "x.json", from_run(RUN, "x"))
    text = (tmp_path / "x.json").read_text()
    assert sum('"sum_sq"' in line for line in text.splitlines()) == 2
    assert violations("baseline", json.loads(text)) == []


def test_a_scenario_keeps_its_domain(tmp_path: Path) -> None:
    run = make_run(final={"date1": [1], "s1": [1]})
    save(tmp_path / "x.json", from_run(run, "x"))
    domains = {id_: row.domain for id_, row in load(tmp_path / "x.json").scenarios.items()}
    assert domains == {"date1": "dates", "s1": "text"}


def test_an_edit_by_hand_is_found_and_can_be_confirmed(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    save(path, from_run(RUN, "x"))
    path.write_text(path.read_text().replace('"sum": 1.5', '"sum": 1.3'))
    with pytest.raises(BaselineError, match=r"x\.json: /hash: .* is not the hash of its content") as refusal:
        load(path)
    old, new = re.findall("[0-9a-f]{64}", str(refusal.value))
    path.write_text(path.read_text().replace(old, new))
    assert load(path).scenarios["b"].sum == 1.3


def test_a_file_without_its_hash_is_unsigned_until_it_is_saved_again(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    save(path, from_run(RUN, "x"))
    path.write_text(re.sub(r'  "hash".*\n', "", path.read_text()))
    found = load(path)
    assert (found.unsigned, from_run(RUN, "x").unsigned) == (True, None)
    assert describe(found)[0] == "baseline x: mean 0.875 over 2 scenarios, 1 error, not signed"
    save(path, found)
    assert load(path) == from_run(RUN, "x")


def test_a_baseline_of_a_replay_keeps_the_digest_of_its_recording(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_bytes(b"answers")
    digest = hashlib.sha256(b"answers").hexdigest()
    for actor, kept in {
        "replay:r.jsonl": {"r.jsonl": digest},
        "replay: r.jsonl#offline": {"r.jsonl": digest},
        "replay:none.jsonl": {},
        "python:r.jsonl": {},
    }.items():
        assert recordings_of(replace(RUN, settings={**RUN.settings, "actor": actor}), tmp_path) == kept
    baseline = replace(from_run(RUN, "x"), recordings={"r.jsonl": digest})
    save(tmp_path / "x.json", baseline)
    assert load(tmp_path / "x.json") == baseline
    assert describe(baseline)[3] == f"  recording r.jsonl, SHA-256 {digest}"
    assert '"recordings"' not in json.dumps(to_wire(from_run(RUN, "x")))


def test_a_recording_that_is_not_as_it_was_is_named(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"answers")
    digest = hashlib.sha256(b"answers").hexdigest()
    baseline = replace(from_run(RUN, "x"), recordings={"r.jsonl": digest})
    assert baseline.other_recording("r.jsonl", path) == ""
    path.write_bytes(b"others")
    told = "r.jsonl is not as it was when baseline x was saved from it (SHA-256 "
    assert baseline.other_recording("r.jsonl", path).startswith(f"{told}{digest[:12]}, now ")
    assert "now unknown" in baseline.other_recording("r.jsonl", tmp_path / "none")
    assert baseline.other_recording("another.jsonl", path) == ""
    assert from_run(RUN, "x").other_recording("r.jsonl", path) == ""


def edit(key: str, value: object, *, of: str = "") -> Callable[[str], str]:
    """Return an edit of a key of the file, or of its row of a scenario."""

    def made(text: str) -> str:
        data = json.loads(text)
        (data["scenarios"][of] if of else data)[key] = value
        return json.dumps(data)

    return made


def without(*keys: str) -> Callable[[str], str]:
    """Return an edit that drops a key, at the end of a path."""

    def made(text: str) -> str:
        data = json.loads(text)
        at = data
        for key in keys[:-1]:
            at = at[key]
        del at[keys[-1]]
        return json.dumps(data)

    return made


def swapped(text: str) -> str:
    data = json.loads(text)
    rows = data["scenarios"]
    rows["a"]["sum"], rows["b"]["sum"] = rows["b"]["sum"], rows["a"]["sum"]
    return json.dumps(data)


def other_hash(text: str) -> str:
    other = make_run({"a": [0]}, {"a": [0.5]})
    return edit("hash", from_run(other, "x").hash)(text)


ROW = {"stamp": "x", "n": 1, "sum": 1, "sum_sq": 1, "errors": 0, "domain": "text"}
EDITS: dict[str, tuple[Callable[[str], str], str]] = {
    "a score is lower": (edit("sum", 1.3, of="b"), "/hash: "),
    "scores are swapped": (swapped, "sum"),
    "a row is dropped": (without("scenarios", "a"), "/hash: "),
    "a row is added": (edit("scenarios", {"new": ROW}), "/hash: "),
    "a row under another name": (lambda text: text.replace('"a": {', '"c": {'), "/hash: "),
    "another task": (edit("stamp", "f" * 64, of="a"), "/hash: "),
    "more errors": (edit("errors", 3, of="a"), "/hash: "),
    "another domain": (edit("domain", "easy", of="a"), "/hash: "),
    "another temperature": (edit("temperature", 0.9), "/hash: "),
    "an impossible temperature": (edit("temperature", 9), "/temperature: "),
    "another actor": (edit("actor", "python:other:solve"), "/hash: "),
    "no stamp of the judge": (edit("stamps", {}), "/hash: "),
    "the hash of another file": (other_hash, "/hash: "),
    "an empty hash": (edit("hash", ""), "/hash: "),
    "no hash but null": (edit("hash", None), "/hash: "),
    "the first version without a hash": (
        lambda text: without("hash")(edit("schema", "tfgrpo.baseline/1")(text)),
        "/schema: ",
    ),
    "a version to come": (edit("schema", "tfgrpo.baseline/3"), "/schema: "),
    "not a number": (edit("sum", float("nan"), of="a"), "cannot read .*NaN"),
    "infinite": (edit("sum", float("inf"), of="a"), "cannot read .*Infinity"),
    "too large to be finite": (
        lambda text: text.replace('"sum": 3.0', '"sum": 1e999'),
        "cannot read .*1e999",
    ),
    "a huge count": (edit("n", 10**400, of="a"), "/scenarios/a/n: "),
    "a count with digits without end": (
        lambda text: text.replace('"n": 3', f'"n": {"9" * 5000}'),
        "cannot read",
    ),
    "a negative count": (edit("errors", -1, of="a"), "/scenarios/a/errors: "),
    "a count that is no integer": (edit("errors", 4.0, of="a"), "/scenarios/a/errors: 4.0 is not an integer"),
    "a count that is a truth value": (edit("n", True, of="a"), "/scenarios/a/n: "),
    "squares above what the sum allows": (
        edit("sum_sq", 1.6, of="b"),
        "/scenarios/b/sum_sq: 1.6 is more than",
    ),
    "squares below what the sum needs": (edit("sum_sq", 0.1, of="a"), "/scenarios/a/sum_sq: "),
    "a key twice": (lambda text: text.replace('"a": {', '"a": {"n": 9, ', 1), "cannot read .*twice"),
    "a row twice": (
        lambda text: text.replace('"scenarios": {', '"scenarios": {"a": ' + json.dumps(ROW) + ","),
        "cannot read .*twice",
    ),
    "an unknown key": (edit("unsigned", False), "unknown key 'unsigned'"),
}


@pytest.mark.parametrize("name", EDITS)
def test_an_edited_baseline_is_refused_with_file_and_key(tmp_path: Path, name: str) -> None:
    change, complaint = EDITS[name]
    path = tmp_path / "x.json"
    save(path, from_run(RUN, "x"))
    before = path.read_text()
    path.write_text(change(before))
    assert path.read_text() != before
    with pytest.raises(BaselineError, match=rf"x\.json: .*{complaint}"):
        load(path)


@given(st.lists(st.lists(st.sampled_from([1.0, 0.3, 0.0, None]), min_size=1, max_size=4), max_size=5))
def test_any_sweep_survives_the_round_trip(tmp_path_factory, cohort: list[list[float | None]]) -> None:
    baseline = from_run(make_run(final={f"s{k}": row for k, row in enumerate(cohort)}), "x")
    path = tmp_path_factory.mktemp("b") / "x.json"
    save(path, baseline)
    assert load(path) == baseline


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("main", "baselines/main.json"),
        ("v1.2", "baselines/v1.2.json"),
        ("ci/other.json", "ci/other.json"),
        ("/abs/x.json", "/abs/x.json"),
    ],
)
def test_a_name_or_a_json_path_locates_a_baseline(name: str, place: str) -> None:
    assert locate(name, Path("root")) == Path("root") / place


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "x" * 65])
def test_a_name_never_becomes_a_path(name: str) -> None:
    with pytest.raises(BaselineError, match="does not name a baseline"):
        locate(name, Path("root"))


def test_a_missing_baseline_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match=r"nope\.json: there is no such baseline.*tfgrpo baseline save"):
        load(tmp_path / "nope.json")
    (tmp_path / "main.json").touch()
    with pytest.raises(BaselineError, match=r"`tfgrpo baseline save mian`; did you mean 'main'\?$"):
        load(tmp_path / "mian.json")


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        ("schema", "other/1", "/schema"),
        ("name", 3, "/name"),
        ("surprise", 1, "unknown key 'surprise'"),
        (
            "scenarios",
            {"a": {"stamp": "x", "n": 1, "sum": 2.0, "sum_sq": 1, "errors": 0}},
            "/scenarios/a/sum: 2",
        ),
        ("scenarios", {"a": {"stamp": "x", "n": -1, "sum": 0, "sum_sq": 0, "errors": 0}}, "/scenarios/a/n"),
        (
            "scenarios",
            {"a": {"stamp": "x", "n": 1, "sum": float("nan"), "sum_sq": 0, "errors": 0}},
            "cannot read the baseline: NaN",
        ),
        ("scenarios", {"a": {"stamp": "x", "n": 1}}, "/scenarios/a: missing key"),
    ],
)
def test_a_malformed_baseline_names_file_and_key(tmp_path: Path, key: str, value, complaint: str) -> None:
    path = tmp_path / "x.json"
    save(path, from_run(RUN, "x"))
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(BaselineError, match=rf"x\.json: .*{complaint}"):
        load(path)


@pytest.mark.parametrize("text", ["", "[]", "{", "\udcff", "[" * 100_000, '{"temperature": 1e999}'])
def test_garbage_is_no_baseline(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BaselineError, match=r"x\.json"):
        load(path)


def test_an_unwritable_place_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BaselineError, match="cannot write the baseline"):
        save(tmp_path / "file" / "x.json", from_run(RUN, "x"))


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        (replace(RUN, status="incomplete"), "is incomplete"),
        (replace(RUN, partial_selection=True), "part of the suite"),
        (replace(RUN, partial_selection=True, status="aborted"), "part of the suite"),
        (replace(make_run({"a": [1]}), partial_selection=True), "part of the suite"),
        (make_run({"a": [1]}), "no final sweep"),
    ],
)
def test_only_a_whole_run_makes_a_baseline(run, complaint: str) -> None:
    with pytest.raises(BaselineError, match=complaint):
        from_run(run, "x")


def test_a_baseline_describes_itself() -> None:
    assert describe(from_run(RUN, "main")) == [
        "baseline main: mean 0.875 over 2 scenarios, 1 error",
        "  run run1 of task demo, 2026-01-31T12:00:30.000Z",
        "  actor offline at temperature 0.3, library cccccccccccc",
        "  metrics reward, check.exact",
        "  a  1.000  3 rollouts",
        "  b  0.750  2 rollouts, 1 error",
    ]


def test_a_scenario_without_a_score_and_one_of_other_letters_are_described_and_written_as_they_are(
    tmp_path: Path,
) -> None:
    baseline = from_run(make_run(final={"é": [1], "long": [None]}), "x")
    assert describe(baseline)[0] == "baseline x: mean 1.000 over 1 scenario, 1 error"
    assert describe(baseline)[-2:] == ["  long  -  0 rollouts, 1 error", "  é     1.000  1 rollout"]
    save(tmp_path / "x.json", replace(baseline, name="café"))
    text = (tmp_path / "x.json").read_text()
    assert '"café"' in text
    assert '"é": {' in text


def test_an_old_file_without_metrics_keeps_its_hash(tmp_path: Path) -> None:
    old = replace(from_run(RUN, "x"), metrics={})
    old = replace(old, scenarios={id_: replace(row, metrics={}) for id_, row in old.scenarios.items()})
    save(tmp_path / "x.json", old)
    text = (tmp_path / "x.json").read_text()
    assert "metrics" not in text
    assert load(tmp_path / "x.json") == old


def test_metrics_are_saved_with_their_scales_as_sums_of_shares(tmp_path: Path) -> None:
    save(tmp_path / "x.json", from_run(rated(RUN, {"a": [0.5, 1.0]}), "x"))
    value = json.loads((tmp_path / "x.json").read_text())
    assert violations("baseline", value) == []
    assert value["metrics"]["politeness"] == {"unit": "", "better": "higher", "most": 1.0}
    assert value["scenarios"]["a"]["metrics"]["politeness"] == [2, 1.5, 1.25]
    assert "politeness" not in value["scenarios"]["b"]["metrics"]
    assert "relative_rank" not in value["metrics"]
    assert any("politeness" in line for line in describe(load(tmp_path / "x.json")))


@pytest.mark.parametrize(
    "sums", [[1, 1.5, 1], [0, 0, 0], [1.5, 1, 1], [9, 1, 1], [2, 1.5, 0.1], [1, 1], [1, -1, 1], [1, "1", 1]]
)
def test_sums_of_a_metric_that_cannot_be_are_refused(tmp_path: Path, sums: list[object]) -> None:
    path = tmp_path / "x.json"
    save(path, from_run(rated(RUN, {"a": [0.5, 1.0]}), "x"))
    value = json.loads(path.read_text())
    value["scenarios"]["a"]["metrics"]["politeness"] = sums
    path.write_text(json.dumps(value))
    with pytest.raises(BaselineError, match=r"x\.json: /scenarios/a/metrics"):
        load(path)


def test_a_metric_without_its_scale_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    save(path, from_run(rated(RUN, {"a": [0.5, 1.0]}), "x"))
    value = json.loads(path.read_text())
    del value["metrics"]["politeness"]
    path.write_text(json.dumps(value))
    with pytest.raises(BaselineError, match="/scenarios/a/metrics: 'politeness' has no scale under metrics"):
        load(path)
