"""Objects of a repository: each as it is, whatever those beside it are."""

import secrets
import zlib
from pathlib import Path

import pytest
from support.repositories import Repository, git, remove_object

from pytest_tfgrpo.harvest.history.git_objects import GitObjects

TEXTS = {"a": "aa", "b": secrets.token_hex(500), "c": "c", "d": ""}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "project")
    made.commit(TEXTS)  # type: ignore[arg-type]
    return made


def ids(repository: Repository) -> list[str]:
    return [git(repository.folder, "rev-parse", f"main:{name}") for name in TEXTS]


@pytest.mark.parametrize("most", [2, 999])
def test_a_large_object_is_left_out_or_cut_and_those_after_it_are_whole(
    repository: Repository, most: int
) -> None:
    names = [*ids(repository), *ids(repository)]
    start = TEXTS["b"][:most].encode()
    with GitObjects(repository.folder) as objects:
        assert list(objects.contents(names, most)) == [b"aa", None, b"c", b""] * 2
        assert list(objects.starts(names, most)) == [b"aa", start, b"c", b""] * 2


def test_an_object_of_exactly_the_most_is_read(repository: Repository) -> None:
    with GitObjects(repository.folder) as objects:
        assert list(objects.contents(ids(repository), 1000)) == [text.encode() for text in TEXTS.values()]


@pytest.mark.parametrize("damage", ["missing", "header", "body"])
def test_a_damaged_object_takes_no_other_with_it(repository: Repository, damage: str) -> None:
    names = ids(repository)
    loose = remove_object(repository, "main:b")
    body = zlib.compress(b"blob 1000\0" + TEXTS["b"].encode())[:-60]
    if damage != "missing":
        loose.write_bytes(body if damage == "body" else b"x")
    with GitObjects(repository.folder) as objects:
        sizes = objects.sizes(names)
        assert list(objects.contents(names, 1000)) == [b"aa", None, b"c", b""]
    assert sizes == [2, 1000 if damage == "body" else None, 1, 0]
