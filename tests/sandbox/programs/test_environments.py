"""Environments: files with stamps, and where a built one is found."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_tfgrpo.core.errors import ScenarioError, SettingError
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.sandbox.programs.environments import (
    BUILT,
    Environment,
    cache_folder,
    find_built,
    read_environment,
    stamp_of,
    to_file,
)

HASH = " --hash=sha256:" + "ab" * 32
FULL = Environment(
    python="3.11",
    lock=(f"iniconfig==2.0.0{HASH}", f"pytest==8.4.0{HASH}{HASH}"),
    files={"package.json": "{}", "sub/package-lock.json": "{}"},
    setup=(("npm", "ci"),),
    imports=(".", "src"),
    variables={"TZ": "UTC"},
    links=("web/node_modules",),
    distributions={"shop": "1.0"},
)


def write(suite: Path, environment: Environment) -> str:
    wanted = stamp_of(environment)
    path = suite / "environments" / f"{wanted}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(to_file(environment)))
    return wanted


def put(suite: Path, data: dict) -> Path:
    path = suite / "environments" / f"{stamp(data)}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def build(cache: Path, wanted: str, python: str = sys.executable) -> Path:
    folder = cache / wanted
    (folder / "python" / "bin").mkdir(parents=True)
    (folder / "python" / "bin" / "python").symlink_to(python)
    (folder / BUILT).write_text("{}")
    return folder


@pytest.mark.parametrize("environment", [FULL, Environment(), replace(FULL, entry_points={"shop": "[a]\n"})])
def test_a_file_gives_back_the_environment_that_was_written(tmp_path, environment):
    wanted = write(tmp_path, environment)
    assert read_environment(tmp_path / "environments" / f"{wanted}.json") == environment


@given(
    st.sampled_from(["python", "lock", "files", "setup", "imports", "variables", "links", "distributions"])
)
def test_the_stamp_depends_on_every_value(name):
    assert stamp_of(replace(FULL, **{name: getattr(Environment(), name)})) != stamp_of(FULL)


def test_a_file_that_was_changed_is_refused(tmp_path):
    wanted = write(tmp_path, FULL)
    path = tmp_path / "environments" / f"{wanted}.json"
    path.write_text(path.read_text().replace("UTC", "CET"))
    with pytest.raises(ScenarioError, match="not the one in its name; restore the file"):
        read_environment(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lock": ["pytest>=8"]}, "/lock/0: .* name==version --hash"),
        ({"lock": [f"pytest==8{HASH} --index-url=http://x"]}, "/lock/0"),
        ({"lock": [f"-r==8{HASH}"]}, "/lock/0"),
        ({"links": ["../x"]}, "relative path"),
        ({"links": ["a/../x"]}, "relative path"),
        ({"links": ["a/.."]}, "relative path"),
        ({"links": [""]}, "relative path"),
        ({"files": {"/etc/x": ""}}, "/etc/x"),
        ({"files": {"a//b": ""}}, "a//b"),
        ({"files": {"a\nb": ""}}, "files"),
        ({"imports": ["./src"]}, "/imports/0"),
        ({"variables": {"LD_PRELOAD": "x"}}, "LD_PRELOAD"),
        ({"variables": {"PYTHONPATH": "x"}}, "PYTHONPATH"),
        ({"variables": {"A=B": "x"}}, "A=B"),
        ({"distributions": {"../x": "1"}}, r"\.\./x"),
        ({"distributions": {"x": "1\nName: y"}}, "a version"),
        ({"python": "3"}, "/python"),
        ({"setup": [[]]}, "/setup/0"),
        ({"colour": 1}, "colour"),
    ],
)
def test_a_value_that_could_do_harm_is_refused_with_its_place(tmp_path, change, message):
    with pytest.raises(ScenarioError, match=message):
        read_environment(put(tmp_path, to_file(FULL) | change))


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "[" * 100_000, '{"schema": NaN}', '{"a": 1, "a": 2}', "\xff"]
)
def test_garbage_is_refused(tmp_path, text):
    path = tmp_path / f"{'0' * 64}.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ScenarioError, match=str(path)):
        read_environment(path)


def test_a_missing_file_and_a_wrong_stamp_are_errors_of_the_suite(tmp_path):
    with pytest.raises(ScenarioError, match="there is no such file"):
        find_built(tmp_path, "0" * 64, tmp_path)
    with pytest.raises(ScenarioError, match="is not a stamp"):
        find_built(tmp_path, "../../x", tmp_path)


def test_an_environment_that_is_not_built_names_the_command_that_builds_it(tmp_path):
    wanted = write(tmp_path, FULL)
    with pytest.raises(SettingError, match=f"tfgrpo harvest env {tmp_path}"):
        find_built(tmp_path, wanted, tmp_path / "cache")


def test_a_killed_build_and_a_removed_interpreter_do_not_count(tmp_path):
    wanted = write(tmp_path, FULL)
    folder = build(tmp_path, wanted)
    assert find_built(tmp_path, wanted, tmp_path).python == folder / "python" / "bin" / "python"
    (folder / BUILT).unlink()
    with pytest.raises(SettingError):
        find_built(tmp_path, wanted, tmp_path)
    (folder / BUILT).write_text("{}")
    (folder / "python" / "bin" / "python").unlink()
    with pytest.raises(SettingError):
        find_built(tmp_path, wanted, tmp_path)


def test_a_built_environment_says_what_programs_get(tmp_path):
    wanted = write(tmp_path, FULL)
    folder = build(tmp_path, wanted)
    built = find_built(tmp_path, wanted, tmp_path)
    assert built.stamp == wanted
    assert built.programs[0] == folder / "python" / "bin"
    assert built.imports == (".", "src")
    assert built.variables == {"TZ": "UTC"}
    assert built.links == {"web/node_modules": folder / "folder" / "node_modules"}
    assert folder in built.readable
    assert Path(sys.executable) in built.readable
    assert [path for path in built.readable if path.is_relative_to(folder)] == [folder]


def test_an_environment_without_python_has_no_interpreter(tmp_path):
    wanted = write(tmp_path, Environment(links=("node_modules",)))
    (tmp_path / wanted).mkdir()
    (tmp_path / wanted / BUILT).write_text("{}")
    built = find_built(tmp_path, wanted, tmp_path)
    assert built.python is None
    assert built.readable == (tmp_path / wanted,)


def test_the_cache_is_where_the_user_has_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "pytest-tfgrpo" / "environments"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert cache_folder() == tmp_path / "home" / ".cache" / "pytest-tfgrpo" / "environments"


def test_a_built_environment_is_found_in_the_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    wanted = write(tmp_path, FULL)
    folder = build(cache_folder(), wanted)
    assert find_built(tmp_path, wanted).folder == folder


@pytest.mark.parametrize("wanted", ["a" * 63, "a" * 65, "A" * 64, "g" * 64, "", "a" * 64 + "\n"])
def test_a_stamp_has_64_digits(tmp_path, wanted):
    with pytest.raises(ScenarioError, match="is not a stamp; write 64 hex digits"):
        find_built(tmp_path, wanted, tmp_path)


def test_programs_of_javascript_come_after_those_of_python(tmp_path):
    wanted = write(tmp_path, FULL)
    folder = build(tmp_path, wanted)
    assert find_built(tmp_path, wanted, tmp_path).programs == (
        folder / "python" / "bin",
        folder / "folder" / "node_modules" / ".bin",
    )
    other = write(tmp_path, replace(FULL, python=None))
    (tmp_path / other).mkdir()
    (tmp_path / other / BUILT).write_text("{}")
    assert find_built(tmp_path, other, tmp_path).programs == (
        tmp_path / other / "folder" / "node_modules" / ".bin",
    )
