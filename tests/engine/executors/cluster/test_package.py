"""What travels to a cluster's nodes: the project as git knows it, without secrets and caches."""

import os
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.engine.executors.cluster import package
from pytest_tfgrpo.engine.executors.cluster.package import Package, write_package


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with what should travel and what should not."""
    root = tmp_path / "project"
    for name in (
        "agent.py",
        "fixtures/one.scenario.yaml",
        "prompt-packs/text/pack.yaml",
        ".env.example",
        ".env",
        "deploy/prod.env",
        "keys/id_rsa",
        "keys/server.pem",
        "credentials.json",
        "out/project/runs/r1/journal.jsonl",
        "__pycache__/agent.cpython-311.pyc",
        ".venv/lib/site.py",
        "node_modules/left/pad.js",
        "ignored/big.bin",
    ):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (root / ".gitignore").write_text("ignored/\n")
    return root


TRAVEL = {
    ".env.example",
    ".gitignore",
    "agent.py",
    "fixtures/one.scenario.yaml",
    "prompt-packs/text/pack.yaml",
}
SECRETS = {".env", "credentials.json", "deploy/prod.env", "keys/id_rsa", "keys/server.pem"}


def written(root: Path, folder: Path, **changes: Any) -> tuple[Package, set[str]]:
    folder.mkdir(exist_ok=True)
    fields = {"left_out": [root / "out"], "most": 10**6, "environ": os.environ} | changes
    found = write_package(root, folder, **fields)
    with zipfile.ZipFile(found.path) as archive:
        return found, set(archive.namelist())


def test_git_decides_what_travels_and_secrets_never_do(root: Path, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    subprocess.run(["git", "-C", str(root), "add", "agent.py", ".env"], check=True)
    package, names = written(root, tmp_path / "a", environ={**os.environ, "GIT_DIR": str(tmp_path)})
    assert names == TRAVEL
    assert set(package.secrets) == SECRETS


def test_without_git_everything_travels_but_what_is_installed_made_or_secret(
    root: Path, tmp_path: Path
) -> None:
    package, names = written(root, tmp_path / "a")
    assert names == TRAVEL | {"ignored/big.bin"}
    assert set(package.secrets) == SECRETS


def test_patterns_leave_files_and_folders_out(root: Path, tmp_path: Path) -> None:
    _, names = written(root, tmp_path / "a", exclude=["ignored/", "*.example", "prompt-packs"])
    assert names == TRAVEL - {".env.example", "prompt-packs/text/pack.yaml"}


def test_equal_files_have_an_equal_stamp_whatever_their_times(root: Path, tmp_path: Path) -> None:
    one, _ = written(root, tmp_path / "a")
    for path in root.rglob("*"):
        os.utime(path, (1, 1))
    other, _ = written(root, tmp_path / "b")
    assert one.stamp == other.stamp
    (root / "agent.py").chmod(0o755)
    third, _ = written(root, tmp_path / "c")
    assert third.stamp != one.stamp


def test_a_link_travels_as_what_it_leads_to_unless_it_leads_out(root: Path, tmp_path: Path) -> None:
    (tmp_path / "private.txt").write_text("mine")
    (root / "copy.py").symlink_to("agent.py")
    (root / "private.txt").symlink_to(tmp_path / "private.txt")
    (root / "packs").symlink_to("prompt-packs")
    (root / "loop").symlink_to("loop")
    (root / "up").symlink_to("..")
    (root / "fixtures" / "whole").symlink_to("..")
    _, names = written(root, tmp_path / "a")
    assert names == TRAVEL | {"copy.py", "ignored/big.bin", "packs/text/pack.yaml"}


def test_a_project_within_this_one_travels_and_a_link_to_a_folder_by_git_does_too(
    root: Path, tmp_path: Path
) -> None:
    for place in (root, root / "inner"):
        subprocess.run(["git", "init", "-q", str(place)], check=True)
    (root / "inner" / "own.py").touch()
    (root / "packs").symlink_to("prompt-packs")
    (root / "elsewhere").symlink_to(tmp_path)
    _, names = written(root, tmp_path / "a")
    assert names == TRAVEL | {"inner/own.py", "packs/text/pack.yaml"}


@pytest.mark.parametrize(
    ("number", "shown"), [(512, "0.5 KiB"), (2**20 - 1024, "1023.0 KiB"), (2**20, "1.0 MiB")]
)
def test_sizes_are_in_kib_and_from_one_mib_in_mib(number: int, shown: str) -> None:
    assert package._size(number) == shown


def test_a_project_that_is_too_large_names_what_is_largest(root: Path, tmp_path: Path) -> None:
    (root / "ignored" / "big.bin").write_bytes(os.urandom(30_000))
    with pytest.raises(SettingError, match=r"more than 19\.5 KiB .*; the largest are 'ignored' 29\.\d KiB"):
        written(root, tmp_path / "a", most=20_000)
