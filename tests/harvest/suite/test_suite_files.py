"""The files of a harvested suite: the scenario comes last, and splits move without touching anything else."""

import errno
import json
import os
from pathlib import Path

import pytest
from support.harvests import make_provenance, make_recipe, make_row, make_validation

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.harvest.fixes import HarvestStatus, Statement
from pytest_tfgrpo.harvest.suite.provenance import FixOrigin, read_provenance, write_provenance
from pytest_tfgrpo.harvest.suite.suite_files import (
    FixArchives,
    SuitePaths,
    lacks_archives,
    resplit,
    scenario_value,
    write_archives,
    write_partial,
    write_proof,
    write_scenario,
)
from pytest_tfgrpo.sandbox.programs.environments import Environment
from pytest_tfgrpo.scoring.runners.protocol import SuiteCommand
from pytest_tfgrpo.suite.documents.yaml_text import parse_yaml

ARCHIVES = FixArchives(base=b"base", hidden=b"hidden", reference=b"reference")


def write(suite, number=0, **more):
    provenance = make_provenance(number, **more)
    write_proof(suite, provenance, None)
    write_scenario(suite, provenance, ARCHIVES, "shop")
    return SuitePaths(suite=suite, id=provenance.id)


def test_a_proven_fix_becomes_a_scenario_with_its_archives_and_its_proof(tmp_path):
    paths = write(tmp_path)
    assert sorted(p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()) == [
        "archives/fix-000000000000.base.tar.gz",
        "archives/fix-000000000000.hidden.tar.gz",
        "fix-000000000000.scenario.yaml",
        "provenance/fix-000000000000.json",
        "references/fix-000000000000.tar.gz",
    ]
    assert parse_yaml(paths.scenario.read_text()).value == {
        "id": "fix-000000000000",
        "domain": "shop",
        "split": "eval",
        "tags": ["harvested"],
        "prompt": "Rounding is wrong in case 0.\nMend it.",
        "workspace": {"archive": "archives/fix-000000000000.base.tar.gz", "sha256": "0" * 64},
        "checks": [
            {
                "kind": "tests",
                "runner": "pytest",
                "hidden": "archives/fix-000000000000.hidden.tar.gz",
                "hidden_sha256": "0" * 64,
                "fail_to_pass": ["tests/test_a.py::test_x"],
                "pass_to_pass": ["tests/test_a.py::test_y"],
                "timeout_s": 600.0,
            }
        ],
    }


def test_a_proof_of_the_first_version_is_one_of_a_history(tmp_path):
    path = tmp_path / "one.json"
    write_provenance(path, make_provenance())
    value = json.loads(path.read_text())
    assert (value["schema"], value.pop("origin")) == ("tfgrpo.provenance/2", {"source": "history"})
    path.write_text(json.dumps({**value, "schema": "tfgrpo.provenance/1"}))
    assert read_provenance(path) == make_provenance()


def test_the_proof_reads_back_and_fits_its_schema(tmp_path):
    provenance = make_provenance(validation=make_validation(environment="e" * 64, wavering=("t::w",)))
    write_proof(tmp_path, provenance, Environment(python="3.11", lock=("a==1",)))
    path = tmp_path / f"provenance/{provenance.id}.json"
    assert read_provenance(path) == provenance
    assert violations("provenance", json.loads(path.read_text())) == []
    assert (tmp_path / f"environments/{'e' * 64}.json").is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot read"),
        ('{"schema": "tfgrpo.provenance/9"}', "#"),
        ("[]", "#"),
        pytest.param("[" * 100_000, "cannot read", id="deep"),
        (None, ": No such file or directory; restore it"),
    ],
)
def test_a_damaged_proof_is_refused_with_its_file(tmp_path, text, message):
    path = tmp_path / "x.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(StoreError, match=f"x.json.*{message}|{message}.*x.json"):
        read_provenance(path)


def test_a_runner_with_a_folder_or_arguments_is_written_whole():
    run = SuiteCommand(runner="command", folder="web", run=("make", "{report}"))
    value = scenario_value(make_provenance(recipe=make_recipe(command=run, protected=("*.golden",))), "shop")
    assert value["checks"][0]["runner"] == {"name": "command", "folder": "web", "run": ["make", "{report}"]}
    assert value["checks"][0]["protected"] == ["*.golden"]


def test_a_prompt_from_which_lines_of_the_fix_were_cut_is_tagged():
    leaking = Statement(text="Mend it", source="issue 1", cut=("return round(x, 2)",))
    value = scenario_value(make_provenance(prompt=leaking, validation=make_validation(relaxed=True)), "shop")
    assert value["tags"] == ["harvested", "leak", "relaxed"]


def test_scenarios_move_to_their_split_by_time_and_a_line_taken_out_by_hand_stays_out(tmp_path):
    for number in range(40):
        write(tmp_path, number)
    rows = [make_row(number) for number in range(40)]
    own = SuitePaths(suite=tmp_path, id=rows[0].id).scenario
    own.write_text(own.read_text().replace("split: eval\n", ""))
    SuitePaths(suite=tmp_path, id=rows[39].id).scenario.unlink()
    assert resplit(tmp_path, rows) == 0
    write(tmp_path, 39)
    assert resplit(tmp_path, rows) == 27
    assert resplit(tmp_path, rows) == 0
    assert "\nsplit: train\n" in SuitePaths(suite=tmp_path, id=rows[1].id).scenario.read_text()
    assert "split:" not in own.read_text()


def family_of(suite, number):
    text = SuitePaths(suite=suite, id=make_row(number).id).scenario.read_text()
    return parse_yaml(text).value.get("family")


def test_fixes_of_one_file_share_a_family_and_what_a_person_wrote_stays(tmp_path):
    sources = {n: (f"{n}.py",) for n in range(20)} | {3: ("a.py", "CHANGES.md"), 5: ("a.py",), 6: ("a.py",)}
    sources |= {7: ("b.py", "CHANGES.md"), 8: ("b.py",)}
    for number, names in sources.items():
        write(tmp_path, number, sources=names)
    own, split = (SuitePaths(suite=tmp_path, id=make_row(n).id).scenario for n in (5, 8))
    own.write_text(own.read_text().replace("split: eval\n", "split: eval\n'family' : pricing # mine\n"))
    split.write_text(split.read_text().replace("split: eval\n", ""))
    rows = [make_row(number) for number in sources]
    assert resplit(tmp_path, rows) == 2
    assert resplit(tmp_path, rows) == 0
    assert {n: family for n in sources if (family := family_of(tmp_path, n))} == {
        3: rows[3].id, 5: "pricing", 6: rows[3].id
    }  # fmt: skip
    assert (
        "\nsplit: eval\nfamily: fix-000000000003\ntags:"
        in (tmp_path / f"{rows[6].id}.scenario.yaml").read_text()
    )


def test_a_family_follows_the_fixes_that_come_and_go(tmp_path):
    for number in (1, 2):
        write(tmp_path, number, sources=("a.py",))
    resplit(tmp_path, [make_row(1), make_row(2)])
    write(tmp_path, 0, sources=("a.py",))
    rows = [make_row(n) for n in range(3)]
    assert resplit(tmp_path, rows) == 3
    assert {family_of(tmp_path, n) for n in range(3)} == {rows[0].id}
    for number in (0, 1):
        SuitePaths(suite=tmp_path, id=rows[number].id).scenario.unlink()
    assert resplit(tmp_path, rows) == 1
    assert family_of(tmp_path, 2) is None


def test_a_scenario_that_is_proven_no_more_is_left_and_its_family_is_named_anew(tmp_path):
    for number in range(3):
        write(tmp_path, number, sources=("a.py",))
    rows = [make_row(number) for number in range(3)]
    resplit(tmp_path, rows)
    rows[0] = make_row(0, status=HarvestStatus.VALIDATION_FAILED)
    assert resplit(tmp_path, rows) == 2
    assert [family_of(tmp_path, n) for n in range(3)] == [rows[0].id, rows[1].id, rows[1].id]


def test_a_scenario_whose_provenance_is_lost_keeps_its_family(tmp_path):
    for number in (1, 2):
        write(tmp_path, number, sources=("a.py",))
    rows = [make_row(1), make_row(2)]
    resplit(tmp_path, rows)
    SuitePaths(suite=tmp_path, id=rows[1].id).provenance.write_text("junk")
    assert resplit(tmp_path, rows) == 1
    assert (family_of(tmp_path, 1), family_of(tmp_path, 2)) == (None, rows[0].id)


def test_a_full_disk_leaves_no_scenario_without_its_archives(tmp_path, monkeypatch):
    really = Path.replace
    for stop_at in range(5):
        suite, calls = tmp_path / f"suite-{stop_at}", []

        def replace(self, target, calls=calls, stop_at=stop_at):
            calls.append(target)
            if len(calls) > stop_at:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return really(self, target)

        monkeypatch.setattr(Path, "replace", replace)
        with pytest.raises(StoreError, match="make room and harvest again, what is proven is kept"):
            write(suite)
        assert not list(suite.glob("*.yaml"))
        assert not list(suite.rglob("*.tmp"))
        monkeypatch.undo()


def test_what_a_person_must_complete_goes_once_it_is_proven(tmp_path):
    id_ = make_provenance().id
    write_partial(tmp_path, id_, {"id": id_, "checks": []}, "# Do this\n")
    paths = SuitePaths(suite=tmp_path, id=id_)
    assert paths.manual.read_text() == "# Do this\n"
    assert paths.partial.is_file()
    write(tmp_path)
    assert not paths.partial.exists()
    assert not paths.manual.exists()


def test_what_a_check_needs_besides_stands_in_the_scenario():
    command = SuiteCommand(runner="command", folder=".", run=("make", "{report}"))
    provenance = make_provenance(
        recipe=make_recipe(protected=("golden/**",), command=command),
        removed_tests=("tests/gone.py",),
        prompt=Statement(text="x", source="model", cut=("leak",)),
        validation=make_validation(uses=("ctypes",), relaxed=True, environment="e" * 64),
        origin=FixOrigin(source="capture", job="j", approver="ann"),
        timeout_s=90.0,
    )
    value = scenario_value(provenance, "shop")
    (check,) = value["checks"]
    assert (check["protected"], check["allow"], check["removed"]) == (
        ["golden/**"], ["ctypes"], ["tests/gone.py"]
    )  # fmt: skip
    assert check["runner"] == {"name": "command", "folder": ".", "run": ["make", "{report}"]}
    assert (check["timeout_s"], value["environment"]) == (90.0, "e" * 64)
    assert value["tags"] == ["captured", "leak", "relaxed"]
    elsewhere = make_recipe(command=SuiteCommand(runner="jest", folder="web"))
    (check,) = scenario_value(make_provenance(recipe=elsewhere), "shop")["checks"]
    assert check["runner"] == {"name": "jest", "folder": "web"}
    assert not {"protected", "allow", "removed", "changes"} & {*check}


def test_a_scenario_says_where_it_comes_from_and_what_a_person_got_goes(tmp_path):
    paths = SuitePaths(suite=tmp_path, id="fix-000000000000")
    write_partial(tmp_path, paths.id, {"a": 1}, "Say how \ud800.")
    assert paths.partial.is_file()
    assert paths.manual.read_bytes() == b"Say how \\ud800."
    write(tmp_path)
    assert not paths.partial.exists()
    assert not paths.manual.exists()
    assert paths.scenario.read_text().startswith(f"# Harvested from commit {0:040x}; its proof: provenance/")
    write(tmp_path, origin=FixOrigin(source="capture", job="4711"))
    assert paths.scenario.read_text().startswith(f"# Captured as job 4711, commit {0:040x}; its proof: ")


@pytest.mark.parametrize("part", ["base", "hidden", "reference", "scenario", "provenance"])
def test_archives_are_lacking_where_scenario_and_proof_are_there(tmp_path, part):
    paths = write(tmp_path)
    assert not lacks_archives(tmp_path, paths.id)
    getattr(paths, part).unlink()
    assert lacks_archives(tmp_path, paths.id) is (part in ("base", "hidden", "reference"))
    for archive in (paths.base, paths.hidden, paths.reference):
        archive.unlink(missing_ok=True)
    assert lacks_archives(tmp_path, paths.id) is (part in ("base", "hidden", "reference"))


def test_a_scenario_that_is_gone_leaves_the_others_in_their_splits(tmp_path):
    for number in range(41):
        write(tmp_path, number, sources=("a.py", "README.md") if number in (3, 40) else ("README.md",))
    SuitePaths(suite=tmp_path, id="fix-000000000000").scenario.unlink()
    SuitePaths(suite=tmp_path, id="fix-000000000005").provenance.unlink()
    assert resplit(tmp_path, [make_row(number) for number in range(41)]) == 29
    texts = {path.name[:16]: path.read_text() for path in tmp_path.glob("*.scenario.yaml")}
    splits = [text.partition("split: ")[2].partition("\n")[0] for _, text in sorted(texts.items())]
    assert [splits.count(name) for name in ("train", "dev", "eval")] == [20, 8, 12]
    assert splits == sorted(splits, key=["train", "dev", "eval"].index)
    named = sorted(id_ for id_, text in texts.items() if "\nfamily: fix-000000000003\n" in text)
    assert named == ["fix-000000000003", "fix-000000000028"]
    bad = SuitePaths(suite=tmp_path, id="fix-000000000001").scenario
    bad.write_bytes(b"\xff")
    with pytest.raises(StoreError, match="cannot read a scenario of"):
        resplit(tmp_path, [make_row(1)])


@pytest.mark.parametrize(
    ("code", "advice"),
    [(errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EFBIG, True), (errno.EACCES, False)],
)
def test_only_a_full_disk_is_told_to_be_made_room_on(tmp_path, monkeypatch, code, advice):
    def fail(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr("pytest_tfgrpo.harvest.suite.suite_files.write_atomic", fail)
    with pytest.raises(StoreError) as caught:
        write_archives(tmp_path, "x", ARCHIVES)
    assert ("make room and harvest again, what is proven is kept" in str(caught.value)) is advice
    assert "x.base.tar.gz" in str(caught.value)
