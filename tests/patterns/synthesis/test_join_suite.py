"""The scenario of a proven job joins a suite."""

from pathlib import Path

import pytest
from support.harvests import make_provenance

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.harvest.suite.harvest_log import read_log_of
from pytest_tfgrpo.harvest.suite.suite_files import (
    FixArchives,
    SuitePaths,
    digests,
    tags_of,
    write_proof,
    write_scenario,
)
from pytest_tfgrpo.patterns.synthesis.join_suite import join_suite
from pytest_tfgrpo.sandbox.archives import ArchiveEntry, pack

ARCHIVES = FixArchives(**{name: pack([ArchiveEntry(name=name)]) for name in ("base", "hidden", "reference")})


def proven(folder: Path, number: int) -> str:
    """Write the files of a proven job, and return the id of its scenario."""
    one = make_provenance(number)
    one = make_provenance(number, archives=digests(SuitePaths(suite=folder, id=one.id), ARCHIVES))
    write_proof(folder, one, None)
    write_scenario(folder, one, ARCHIVES, "shop")
    return one.id


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    return tmp_path / "suite"


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_it_joins_once_with_all_its_files(tmp_path: Path, suite: Path) -> None:
    id_ = proven(tmp_path / "job", 0)
    (tmp_path / "job" / "prompt.md").write_text("not of the suite")
    assert join_suite(tmp_path / "job", id_, suite)
    assert not join_suite(tmp_path / "job", id_, suite)
    assert names(suite) - {"harvest.jsonl"} == names(tmp_path / "job") - {"prompt.md"}
    (row,) = read_log_of(suite).values()
    known = make_provenance(0)
    assert (row.id, row.tests) == (id_, len(known.validation.fail_to_pass))
    assert row.tags == tuple(tags_of(known))
    assert row.committed_at == known.committed_at
    (suite / f"{id_}.scenario.yaml").unlink()
    assert not join_suite(tmp_path / "job", id_, suite), "a person took it out"


def test_fixes_of_the_same_files_share_a_family(tmp_path: Path, suite: Path) -> None:
    ids = [proven(tmp_path / f"job-{n}", n) for n in range(2)]
    for n, id_ in enumerate(ids):
        join_suite(tmp_path / f"job-{n}", id_, suite)
    assert all(f"family: {ids[0]}\n" in (suite / f"{id_}.scenario.yaml").read_text() for id_ in ids)


def test_a_job_that_lacks_a_file_joins_later(tmp_path: Path, suite: Path) -> None:
    id_ = proven(tmp_path / "job", 0)
    archive = tmp_path / "job" / "references" / f"{id_}.tar.gz"
    data = archive.read_bytes()
    archive.unlink()
    with pytest.raises(StoreError, match=r"cannot copy .*tar\.gz"):
        join_suite(tmp_path / "job", id_, suite)
    assert not (suite / f"{id_}.scenario.yaml").exists()
    archive.write_bytes(data)
    assert join_suite(tmp_path / "job", id_, suite)
