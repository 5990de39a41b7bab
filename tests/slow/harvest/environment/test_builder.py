"""The builder: the same environment from the same recipe, whatever ends a build and whatever a build does."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.environment.builder import AT, HERE, part, tools_for
from support.tools import require_tool
from support.wheels import make_sdist, make_wheel, served

from pytest_tfgrpo.harvest.environment import builder as builder_module
from pytest_tfgrpo.harvest.environment.builder import EnvironmentBuilder, until_of
from pytest_tfgrpo.harvest.environment.package_tools import BuildProblem, BuildTools
from pytest_tfgrpo.harvest.recipe.machine_pythons import find_interpreters
from pytest_tfgrpo.sandbox.programs.environments import BUILT, Environment, find_built, stamp_of, to_file


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    make_wheel(folder, "soap", "1.0")
    make_wheel(folder, "soap", "2.0")
    make_wheel(folder, "shop", "9.9")
    make_sdist(folder, "lye", "1.0", Path(__file__))
    return folder


@pytest.fixture(scope="module", params=["uv", "pip"])
def made(request, index, tmp_path_factory):
    """A builder with each tool, and what it made of a recipe with a wheel and a source distribution."""
    cache = tmp_path_factory.mktemp("cache")
    builder = EnvironmentBuilder(tools_for(index, request.param), cache)
    recipe = part(
        dependencies=("soap>=1", "lye", "shop"),
        entry_points={"shop": "[console_scripts]\nshop = shop.cli:main\n\n[pytest11]\nshop = shop.plugin\n"},
        setup=(("sh", "-c", "env > seen; touch /outside; echo kept > kept"),),
        variables={"TZ": "UTC"},
        imports=("src",),
    )
    return builder, recipe, cache, builder.make(recipe, AT)


def run(made, program: str) -> str:
    return subprocess.run(
        [made.built.python, "-I", "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_interpreter_has_the_locked_packages(made):
    *_, found = made
    assert [line.split()[0] for line in found.environment.lock] == ["lye==1.0", "soap==2.0"]
    assert all("--hash=sha256:" in line for line in found.environment.lock)
    assert run(found, "import soap; print(soap.VERSION)") == "2.0"


def test_the_project_itself_is_found_by_its_metadata_alone(made):
    *_, found = made
    program = (
        "from importlib.metadata import entry_points, version; print(version('shop'), "
        "*(e.value for e in entry_points(group='pytest11')))"
    )
    assert run(found, program) == "1.2 shop.plugin"
    script = found.built.programs[0] / "shop"
    assert "from shop.cli import main" in script.read_text()
    assert os.access(script, os.X_OK)


def test_code_of_packages_sees_no_variables_and_no_files_of_the_user(made):
    *_, found = made
    seen = json.loads(run(found, "import json, lye; print(json.dumps(lye.SEEN))"))
    assert "SECRET_TOKEN" not in seen["variables"]
    assert seen["home"] == "/tmp"
    assert not seen["outside"]
    names = {
        line.partition("=")[0] for line in (found.built.folder / "folder" / "seen").read_text().splitlines()
    }
    assert "SECRET_TOKEN" not in names
    assert not Path("/outside").exists()
    assert (found.built.folder / "folder" / "kept").read_text() == "kept\n"


def test_a_date_that_cannot_be_applied_is_said(made):
    *_, found = made
    assert "the date was not applied" in found.notes[0] or "it was not applied" in found.notes[0]


def test_an_equal_recipe_is_made_once(made, monkeypatch):
    builder, recipe, _, found = made
    monkeypatch.setattr(builder_module, "make_venv", None)
    monkeypatch.setattr(builder_module, "lock", None)
    again = builder.make(recipe, AT + 3600)
    assert again == found


def test_a_suite_finds_what_was_built(made, tmp_path):
    *_, cache, found = made
    folder = tmp_path / "environments"
    folder.mkdir()
    (folder / f"{found.built.stamp}.json").write_text(json.dumps(to_file(found.environment)))
    assert find_built(tmp_path, found.built.stamp, cache) == found.built


def test_another_cache_gets_the_same_from_the_file_alone(made, index, tmp_path):
    builder, _, _, found = made
    if builder._tools.uv is None:
        pytest.skip("once is enough")
    other = EnvironmentBuilder(builder._tools, tmp_path)
    built = other.build(found.environment)
    assert built.stamp == found.built.stamp
    assert built.folder.parent == tmp_path


@pytest.fixture
def bare(tmp_path):
    """A builder for environments without Python, which take no time."""
    require_tool("bwrap")
    tools = BuildTools(interpreters={}, uv=None, environ={"PATH": os.environ["PATH"], "SECRET": "x"})
    return EnvironmentBuilder(tools, tmp_path / "cache")


def shell(text: str, **values: Any) -> Environment:
    return Environment(setup=(("sh", "-c", text),), **values)


def test_what_a_killed_build_left_is_built_again(bare, tmp_path):
    environment = shell("echo whole > it")
    folder = tmp_path / "cache" / stamp_of(environment)
    (folder / "folder" / "half").mkdir(parents=True)
    bare.build(environment)
    assert sorted(path.name for path in (folder / "folder").iterdir()) == ["it"]
    assert (folder / BUILT).exists()


def test_a_build_that_is_killed_leaves_nothing_that_counts(tmp_path):
    require_tool("bwrap")
    program = f"""
import sys; from pathlib import Path
from pytest_tfgrpo.sandbox.programs.environments import Environment
from pytest_tfgrpo.harvest.environment.builder import EnvironmentBuilder
from pytest_tfgrpo.harvest.environment.package_tools import BuildTools
tools = BuildTools(interpreters={{}}, uv=None, environ={{}})
command = ("sh", "-c", "touch started; test -e go && exit; sleep 60")
EnvironmentBuilder(tools, Path({str(tmp_path)!r})).build(Environment(setup=(command,)))
"""
    environment = Environment(setup=(("sh", "-c", "touch started; test -e go && exit; sleep 60"),))
    folder = tmp_path / stamp_of(environment)
    process = subprocess.Popen([sys.executable, "-c", program])
    try:
        while not (folder / "folder" / "started").exists():
            assert process.poll() is None
            time.sleep(0.01)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (folder / BUILT).exists()
    quick = BuildTools(interpreters={}, uv=None, environ={}, timeout_s=0.2)
    with pytest.raises(BuildProblem, match="over its limit of time"):
        EnvironmentBuilder(quick, tmp_path).build(environment)
    assert not (folder / BUILT).exists()


def test_threads_that_want_one_environment_build_it_once(bare, tmp_path):
    environment = shell("echo line >> runs; sleep 0.2")
    threads = [threading.Thread(target=bare.build, args=(environment,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    folder = tmp_path / "cache" / stamp_of(environment)
    assert (folder / "folder" / "runs").read_text() == "line\n"


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("exit 3", {}, "ended with 3"),
        ("echo reason >&2; exit 1", {}, "reason"),
        (
            "ln -s /etc ../folder/node_modules",
            {"links": ("node_modules",)},
            "made a link of folder/node_modules",
        ),
        ("cd ..; rm -r folder; ln -s /etc folder", {}, "made a link of folder"),
        ("touch ../built.json", {}, "wrote built.json"),
        ("ln -s /etc/x ../built.json", {}, "wrote built.json"),
        ("true", {"links": ("node_modules",)}, "made no node_modules"),
        ("kill -9 $$", {}, "ended with"),
    ],
)
def test_a_set_up_command_that_fails_or_leads_out_gives_no_environment(bare, tmp_path, text, values, message):
    environment = shell(text, **values)
    with pytest.raises(BuildProblem, match=message):
        bare.build(environment)
    assert not (tmp_path / "cache" / stamp_of(environment) / BUILT).is_file() or "built" in message


def test_a_set_up_command_that_changes_the_interpreter_gives_no_environment(index, tmp_path):
    builder = EnvironmentBuilder(tools_for(index, "uv"), tmp_path)
    for command in ("ln -sf /bin/sh ../python/bin/python", "echo home = / > ../python/pyvenv.cfg"):
        with pytest.raises(BuildProblem, match="changed the interpreter"):
            builder.build(replace(shell(command), python=HERE))


def test_a_set_up_command_writes_its_own_folder_alone(bare, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("safe")
    seen = tmp_path / "cache" / "other"
    seen.mkdir(parents=True)
    bare.build(shell(f"echo bad > {victim}; echo bad > {seen}/x; echo bad > ~/home; env > seen; true"))
    assert victim.read_text() == "safe"
    assert list(seen.iterdir()) == []
    assert not (Path.home() / "home").exists()


def test_a_requirement_that_cannot_be_met_is_named_and_not_tried_again(index, tmp_path, monkeypatch):
    builder = EnvironmentBuilder(tools_for(index, "uv"), tmp_path)
    with pytest.raises(BuildProblem, match=r"cannot resolve soap>=3"):
        builder.make(part(dependencies=("soap>=3",)), AT)
    monkeypatch.setattr(builder_module, "lock", None)
    with pytest.raises(BuildProblem, match=r"cannot resolve soap>=3"):
        builder.make(part(dependencies=("soap>=3",)), AT)


PRESS = """
def build_wheel(folder, config_settings=None, metadata_directory=None):
    {body}
"""
OLD_PRESS = """
    import os, zipfile
    name = "lye-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("lye.py", "PRESS = 1")
        wheel.writestr("lye-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: lye\\nVersion: 1.0\\n")
        wheel.writestr("lye-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        wheel.writestr("lye-1.0.dist-info/RECORD", "")
    return name
"""


def test_what_builds_a_package_from_source_is_of_the_commits_time(tmp_path):
    index = tmp_path / "index"
    days = {}
    for version, body, day in (
        ("1.0", OLD_PRESS, "2021-01-01"),
        ("2.0", "raise KeyError('old')", "2024-01-01"),
    ):
        made = make_wheel(index, "press", version, {"press.py": PRESS.format(body=body)})
        days[made.name] = day
    system = 'requires = ["press"]\nbuild-backend = "press"'
    days[make_sdist(index, "lye", "1.0", Path(__file__), system).name] = "2021-01-01"
    recipe = part(dependencies=("lye",))
    with served(index, days) as more:
        builder = EnvironmentBuilder(tools_for(index, "uv", more), tmp_path / "cache")
        found = builder.make(recipe, AT)
        assert found.environment.until == "2022-08-01T00:00:00Z"
        assert run(found, "import lye; print(lye.PRESS)") == "1"
        with pytest.raises(BuildProblem, match=r"Failed to build.*lye==1\.0.*: KeyError: 'old'"):
            builder.make(replace(recipe, relaxed=True), AT)


def test_a_damaged_cache_of_what_recipes_resolve_to_is_made_again(bare, tmp_path):
    recipe = part(python=None, setup=(("true",),), distributions={})
    first = bare.make(recipe, AT)
    for path in (tmp_path / "cache" / "resolved").glob("*.json"):
        path.write_text('{"environment": {}}')
    assert bare.make(recipe, AT) == first


def test_node_packages_get_a_lock_and_a_link(bare, tmp_path):
    require_tool("npm")
    files = {
        "package.json": '{"name": "shop", "dependencies": {"soap": "file:./soap"}}',
        "soap/package.json": '{"name": "soap", "version": "1.0.0"}',
    }
    recipe = part(
        folder="web",
        python=None,
        files=files,
        setup=(("npm", "ci", "--no-audit", "--no-fund", "--offline"),),
        distributions={},
    )
    found = bare.make(replace(recipe, relaxed=True), AT)
    assert "package-lock.json" in found.environment.files
    assert (found.built.links["web/node_modules"] / "soap" / "package.json").is_file()


def test_an_interpreter_is_found_on_the_path_and_in_pyenv_and_one_that_does_not_start_is_not(tmp_path):
    shims, pyenv = tmp_path / "shims", tmp_path / "pyenv"
    for place, text in (
        (tmp_path / "bin" / "python3.98", "#!/bin/sh\necho 3.98"),
        (tmp_path / "bin" / "python3.97", "#!/bin/sh\nexit 1"),
        (shims / "python3.96", "#!/bin/sh\necho 3.96"),
        (pyenv / "versions" / "3.95.1" / "bin" / "python", "#!/bin/sh\necho 3.95"),
        (pyenv / "versions" / "3.95.12" / "bin" / "python", "#!/bin/sh\necho 3.95"),
    ):
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(0o755)
    found = find_interpreters(f"{shims}:relative:{tmp_path / 'bin'}", pyenv)
    assert list(found) == [HERE, "3.95", "3.98"]
    assert found["3.95"].parts[-3] == "3.95.12"
    assert shutil.which(str(found[HERE]))


def test_modules_are_compiled_as_no_run_can_write_them(made):
    *_, found = made
    assert list(found.built.folder.glob("python/lib/*/site-packages/__pycache__/soap.*.pyc"))


def test_a_python_that_is_not_here_is_named(bare):
    with pytest.raises(BuildProblem, match=r"no Python 3\.99 on this machine, which has none; install it"):
        bare.make(part(python="3.99"), AT)


def test_a_recipe_that_needs_nothing_needs_no_environment(bare):
    assert bare.make(part(python=None, dependencies=("pytest",)), AT).built is None


@pytest.mark.parametrize("values", [{"variables": {"TZ": "UTC"}}, {"imports": ("src",)}])
def test_variables_and_folders_of_modules_need_an_environment_but_no_python(bare, values):
    found = bare.make(part(python=None, dependencies=("pytest",), distributions={}, **values), AT)
    assert found.built.python is None
    assert (found.built.variables, found.built.imports) == (
        values.get("variables", {}),
        values.get("imports", ()),
    )


def test_a_recipe_that_would_do_harm_gives_no_environment(bare):
    with pytest.raises(BuildProblem, match="LD_PRELOAD"):
        bare.make(part(python=None, setup=(("true",),), variables={"LD_PRELOAD": "x"}), AT)


@pytest.mark.parametrize(
    ("at", "until"),
    [
        (AT, "2022-08-01T00:00:00Z"),
        (1672531199, "2023-01-01T00:00:00Z"),
        (-1, "1970-02-01T00:00:00Z"),
        (10**30, "9892-04-01T00:00:00Z"),
    ],
)
def test_changes_of_one_month_share_a_date(at, until):
    assert until_of(at) == until
