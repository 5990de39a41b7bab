"""Tasks of somebody else's: what their files say becomes a scenario, and anything else is told by name."""

import json

import pytest
from support.harbor import FOREIGN, import_tasks, read_tasks, scenarios_in, write_task

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.sandbox.archives import read_archive
from pytest_tfgrpo.suite.imports.harbor.dockerfile import DockerfileReader
from pytest_tfgrpo.suite.imports.harbor.ids_of_tests import ids_in
from pytest_tfgrpo.suite.imports.harbor.reward_script import read_script
from pytest_tfgrpo.suite.imports.harbor.task_folder import TaskProblem

IDS = ["harbor_tests/test_sums.py::test_double", "harbor_tests/test_sums.py::TestMore::test_nothing"]


def test_a_task_becomes_a_scenario(tmp_path):
    found = import_tasks(tmp_path / "suite", write_task(tmp_path / "double", {}))
    (scenario,) = scenarios_in(tmp_path / "suite").values()
    digest = scenario["workspace"].pop("sha256")
    assert scenario == {
        "id": "double",
        "prompt": FOREIGN["instruction.md"],
        "tags": ["sums"],
        "timeout_s": 300.0,
        "workspace": {"archive": "archives/double.base.tar.gz"},
        "checks": [
            {
                "kind": "tests",
                "runner": "pytest",
                "hidden": "archives/double.hidden.tar.gz",
                "fail_to_pass": IDS,
                "protected": ["harbor_tests"],
                "timeout_s": 90.0,
            }
        ],
    }
    assert len(digest) == 64
    assert entries(tmp_path / "suite/archives/double.base.tar.gz") == {
        "README.md": FOREIGN["environment/README.md"],
        "src/sums.py": FOREIGN["environment/src/sums.py"],
    }
    assert entries(tmp_path / "suite/archives/double.hidden.tar.gz") == {
        "harbor_tests/test_sums.py": FOREIGN["tests/test_sums.py"]
    }
    assert [line.partition(": ")[2] for line in found.report()] == [
        "`metadata.difficulty` of a task.toml (first: double)",
        "a solution, as it is a script (first: double)",
        "packages that a test.sh installs (first: double)",
        "packages that the `RUN` of a Dockerfile installs (first: double)",
        "the image and interpreter of a Dockerfile (first: double)",
    ]


def entries(path):
    return {entry.name: entry.data.decode() for entry in read_archive(path)}


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"task.toml": "steps = [{name = 'a'}]\n"}, "it has several steps (`steps` of its task.toml)"),
        ({"task.toml": "[environment]\nos = 'Windows'\n"}, "it is for Windows"),
        ({"task.toml": "[verifier]\nenvironment_mode = 'separate'\n"}, "its tests have a container of their"),
        ({"task.toml": "[verifier.environment]\ncpus = 1\n"}, "its tests have a container of their own"),
        ({"task.toml": "[verifier.env]\nKEY = '${KEY}'\n"}, "its tests need variables"),
        ({"task.toml": "[[environment.mcp_servers]]\nname = 'a'\n"}, "it has MCP servers"),
        ({"task.toml": "a = [\n"}, "task.toml is not TOML that can be read here: "),
        ({"task.toml": "a = nan\n"}, "task.toml is not TOML that can be read here: "),
        ({"trajectory.json": "{}"}, "it begins with a conversation (trajectory.json)"),
        ({"instruction.md": None}, "it has no instruction.md"),
        ({"environment/Dockerfile": None}, "it has no environment/Dockerfile"),
        (
            {"environment/Dockerfile": None, "task.toml": "[environment]\ndocker_image = 'me/it:1'\n"},
            "its files are in the image 'me/it:1'",
        ),
        (
            {"environment/docker-compose.yaml": "services: {}\n"},
            "what environment/docker-compose.yaml does to",
        ),
        ({"environment/.dockerignore": "*\n"}, "what environment/.dockerignore does to its container"),
        ({"tests/test.sh": None}, "it has no tests/test.sh"),
        (
            {"tests/test.sh": "python /tests/check.py\n"},
            "its test.sh does more than run pytest and write 1 or",
        ),
        ({"tests/conftest.py": ""}, "its tests have a conftest.py of their own, which may change what runs"),
        ({"tests/test_sums.py": None}, "its test.sh names the file 'test_sums.py', which is not in tests/"),
        ({"tests/test_sums.py": "x = 1\n"}, "no test was found in tests/"),
        ({"tests/data.txt": "see /app/x\n"}, "data.txt names the folder /app, which only a container has"),
        ({"instruction.md": "Look into `/tests`.\n"}, "instruction.md names the folder /tests, which only"),
        ({"environment/Dockerfile": "FROM python\nCOPY README.md /app/\n"}, "its Dockerfile sets no WORKDIR"),
        ({"environment/Dockerfile": "FROM python\nWORKDIR /\n"}, "its Dockerfile sets no WORKDIR"),
        (
            {"environment/Dockerfile": "FROM python\nWORKDIR /app\nCOPY README.md /etc/\n"},
            "its Dockerfile puts '/etc/README.md' outside of /app, where agents work",
        ),
        ({"instruction.md": "\xff"}, None),
        ({"task.toml": "[environment]\ndocker_image = 'me/it:1'\n"}, None),
    ],
)
def test_a_task_that_no_scenario_can_stand_for_is_told_and_the_others_imported(tmp_path, files, why):
    write_task(tmp_path / "tasks" / "good", {})
    write_task(tmp_path / "tasks" / "odd", files)
    found = read_tasks(tmp_path / "tasks")
    if why is None:
        assert len(found.scenarios) == 2
        return
    assert [scenario["id"] for scenario in found.scenarios] == ["good"]
    ((name, told),) = found.refused
    assert name == "odd"
    assert told.startswith(why)
    assert f"not imported: odd: {why}" in next(found.report())


def test_a_folder_without_a_task_is_an_error(tmp_path):
    with pytest.raises(ScenarioError, match=r"there is no task: no task\.toml, and no folder with one"):
        read_tasks(tmp_path)
    with pytest.raises(ScenarioError, match="cannot read the tasks"):
        read_tasks(tmp_path / "none")


def test_nothing_is_written_where_no_task_can_be_imported(tmp_path):
    task = write_task(tmp_path / "odd", {"tests/test.sh": "true\n"})
    with pytest.raises(
        ScenarioError, match=r"nothing could be imported\nnot imported: odd: its test\.sh does"
    ):
        import_tasks(tmp_path / "suite", task)
    assert not (tmp_path / "suite").exists()


def test_files_that_are_there_are_not_replaced(tmp_path):
    task = write_task(tmp_path / "double", {})
    (tmp_path / "suite" / "archives").mkdir(parents=True)
    (tmp_path / "suite" / "archives" / "double.base.tar.gz").write_text("mine")
    with pytest.raises(ScenarioError, match=r"double\.base\.tar\.gz exists; name another folder with --into"):
        import_tasks(tmp_path / "suite", task)


# Dockerfiles

CONTEXT = {"Dockerfile": "", "a.txt": "a", "src/b.txt": "b", "src/in/c.txt": "c", "x.tar.gz": ""}


def placed(text: str, workdir: str = "/app") -> dict[str, str]:
    from pytest_tfgrpo.sandbox.archives import ArchiveEntry

    reader = DockerfileReader({n: ArchiveEntry(name=n, data=t.encode()) for n, t in CONTEXT.items()})
    reader.read(text)
    return {entry.name: entry.data.decode() for entry in reader.workspace(reader.workdir or workdir)}


@pytest.mark.parametrize(
    ("rows", "names"),
    [
        ("COPY a.txt .", ["a.txt"]),
        ("COPY a.txt /app", ["a.txt"]),
        ("COPY a.txt /app/", ["a.txt"]),
        ("COPY a.txt b.txt", ["b.txt"]),
        ("COPY ./src .", ["b.txt", "in/c.txt"]),
        ("COPY src/ src/", ["src/b.txt", "src/in/c.txt"]),
        ("COPY src/in /app/src", ["src/c.txt"]),
        ("COPY a.txt src/b.txt to/", ["to/a.txt", "to/b.txt"]),
        ("COPY src to\nCOPY a.txt to", ["to/a.txt", "to/b.txt", "to/in/c.txt"]),
        ('COPY  ["a.txt", "./"]', ["a.txt"]),
        ("COPY --chown=1:1 --link a.txt ./", ["a.txt"]),
        ("copy a.txt \\\n  # why\n\n  ./", ["a.txt"]),
        ("ADD src /app/", ["b.txt", "in/c.txt"]),
        ("WORKDIR in\nCOPY a.txt .", ["a.txt"]),
        ("RUN apt-get update && apt-get install -y git && rm -rf /var/lib/apt/lists/*", []),
        ("RUN rm -rf ~/.cache $HOME/.cache/pip /home/me/.cache /tmp/x", []),
        ("RUN python -m pip install -r x && mkdir -p /app/y", []),
        ("RUN A=1 uv pip install x; npm install -g y && pip3 install z && python3.12 -m pip install q", []),
        ("ENV A=1\nARG B\nLABEL c=d\nUSER me\nEXPOSE 80\nCMD ['x']", []),
    ],
)
def test_what_a_dockerfile_copies_is_known(rows, names):
    assert sorted(placed(f"FROM python:3.12-slim AS x\nWORKDIR /app\n{rows}\n")) == names


@pytest.mark.parametrize(
    "rows",
    [
        "RUN git clone https://example.org/x",
        "RUN echo x > y",
        "RUN pip install x; sed -i s/a/b/ c",
        "RUN pip install $(cat x)",
        "RUN pip install `cat x`",
        "RUN rm -rf /var/../app/x",
        "RUN rm -rf src",
        "RUN mkdir /app/x",
        "RUN npm install x",
        "RUN pip download x",
        "RUN uv sync",
        "RUN python -m build",
        "RUN A=1",
        "RUN rm -rf /app/src/.cache",
        "RUN rm -rf ~/.cached",
        "RUN <<EOF\ntouch x\nEOF",
        'RUN ["touch", "x"]',
        "RUN pip install 'x",
        "FROM python",
        "COPY --from=0 a.txt .",
        "COPY --chmod=755 a.txt .",
        "COPY *.txt .",
        "COPY $A .",
        "COPY ../a.txt .",
        "COPY a.txt ../x",
        "COPY none.txt .",
        "COPY a.txt",
        'COPY ["a.txt", 1]',
        'COPY ["a.txt"',
        "COPY <<X .\nX",
        "ADD https://example.org/x .",
        "ADD git@example.org:x .",
        "ADD x.tar.gz .",
        "ENTRYPOINT ['x']",
        "ONBUILD COPY a.txt .",
        "WORKDIR $HOME",
        "VOLUME /x",
        "HEALTHCHECK CMD x",
    ],
)
def test_what_a_dockerfile_does_besides_cannot_be_followed(rows):
    with pytest.raises(TaskProblem, match=r"^Dockerfile:[3-5]: "):
        placed(f"FROM python\nWORKDIR /app\n{rows}\n")


def test_a_plain_image_has_no_files_and_what_add_fetches_or_unpacks_is_named():
    for image in ("alpine", "buildpack-deps", "busybox", "debian", "fedora", "node", "python", "ubuntu"):
        assert placed(f"FROM --platform=a docker.io/library/{image}:1@sha256:0\nWORKDIR /app\n") == {}
    for source in ("https://example.org/x", "git@example.org:x", "x.tar.gz", "x.tgz"):
        with pytest.raises(TaskProblem, match="which fetches or unpacks"):
            placed(f"FROM python\nWORKDIR /app\nADD {source} .\n")


@pytest.mark.parametrize("image", ["swebench/x:1", "scratch", "ghcr.io/a/python", "$BASE", ""])
def test_an_image_may_hold_files_that_nobody_knows(image):
    with pytest.raises(TaskProblem, match="Dockerfile:1: which files the image"):
        placed(f"FROM {image}\n")


def test_an_escape_character_is_not_followed():
    with pytest.raises(TaskProblem, match="Dockerfile:3: it has several stages"):
        placed("# It says how.\nFROM python\nFROM python\n")
    with pytest.raises(TaskProblem, match="Dockerfile:3: which files the image"):
        placed("# It says how.\n\nFROM scratch\n")
    with pytest.raises(TaskProblem, match="another escape character"):
        placed("# syntax=docker/dockerfile:1\n# escape=`\nFROM python\n")


# test.sh

ECHO = "echo 1 > /logs/verifier/reward.txt\n{}\necho 0 > /logs/verifier/reward.txt\nfi\n"
ELSE = ECHO.format("else")


@pytest.mark.parametrize(
    ("script", "files", "installs"),
    [
        (f"pytest /tests/test_a.py -rA\nif [ $? -eq 0 ]; then\n{ELSE}", ("test_a.py",), False),
        (f'pytest /tests/t.py\nrc=$?\nif [ "$rc" -eq 0 ]; then\n{ELSE}exit "$rc"\n', ("t.py",), False),
        (f"pytest /tests/t.py\nrc=$?\nif [ $rc -eq 0 ]; then\n{ELSE}", ("t.py",), False),
        (f"set -uo pipefail\ncd /app\nif python3 -m pytest -q /tests; then\n{ELSE}exit 0\n", (), False),
        (f"pip install pytest\nif pytest --tb=short /tests/a/b.py; then {ELSE}", ("a/b.py",), True),
        (f"if uv run --with x pytest --ctrf /logs/c.json /tests/t.py\nthen\n{ELSE}", ("t.py",), True),
        (
            "apt-get update\napt-get install -y curl\ncurl -LsSf https://astral.sh/uv/0.9.7/install.sh | sh\n"
            'source $HOME/.local/bin/env\nif [ "$PWD" = "/" ]; then\n  echo "No."\n  exit 1\nfi\n'
            f"uvx -p 3.13 -w pytest==8.4.1 \\\n  pytest /tests/t.py -rA\nif [ $? -eq 0 ]; then {ELSE}",
            ("t.py",),
            True,
        ),
    ],
)
def test_a_script_that_runs_pytest_and_writes_the_reward_is_read(script, files, installs):
    assert read_script(f"#!/bin/bash\n# It says how.\n{script}", "/app") == (files, installs)


@pytest.mark.parametrize(
    "script",
    [
        "",
        "pytest /tests/t.py\n",
        f"if pytest /tests/t.py | tee log; then\n{ELSE}",
        f"if pytest -k one /tests/t.py; then\n{ELSE}",
        f"if pytest /tests/t.py::test_one; then\n{ELSE}",
        f"if pytest /tests/../app/t.py; then\n{ELSE}",
        f"if pytest t.py; then\n{ELSE}",
        f"if ! pytest /tests/t.py; then\n{ELSE}",
        f"if true; then\n{ELSE}",
        f"if python x pytest /tests/t.py; then\n{ELSE}",
        f"if bash -m pytest /tests/t.py; then\n{ELSE}",
        f"cd /elsewhere\nif pytest /tests/t.py; then\n{ELSE}",
        f"if pytest /tests/t.py; then\n{ELSE}rm -rf /app\n",
        f"curl https://example.org/x.sh | sh\nif pytest /tests/t.py; then\n{ELSE}",
        f"curl https://astral.sh/uv/install.sh -o x\nif pytest /tests/t.py; then\n{ELSE}",
        f"source /app/env\nif pytest /tests/t.py; then\n{ELSE}",
        f"source\nif pytest /tests/t.py; then\n{ELSE}",
        f"if pytest /tests/t.py; else\n{ELSE}",
        f"if pytest /tests/t.py; then\n{ECHO.format('then')}",
        f"if pytest /tests/t.py; then\n{ELSE.replace('fi', 'done')}",
        "if pytest /tests/t.py; then\n" + ELSE.replace("echo 0", "echo 1"),
        "if pytest /tests/t.py; then\n" + ELSE.replace("reward.txt", "other.txt"),
        "pytest /tests/t.py\nif [ $? -ne 0 ]; then\n" + ELSE,
        "pytest '/tests/t.py\n",
        f"pytest /tests/t.py\nrc=$?\nif [ $other -eq 0 ]; then\n{ELSE}",
        f"pytest /tests/t.py\nrc=$?\nif [ $rc -eq 0 ]; then\n{ELSE}exit $other\n",
    ],
)
def test_any_other_script_is_refused(script):
    with pytest.raises(TaskProblem):
        read_script(script, "/app")


# names of tests


def test_the_ids_of_tests_are_read_from_the_text():
    text = (
        "import os\nfrom x import y\n'''Words.'''\nA = 1\n"
        "def helper(): ...\ndef test_a(): ...\ndef test_a(): ...\n"
        "class TestB:\n    def test_c(self): ...\n    def other(self): ...\n"
        "class Sums(unittest.TestCase):\n    def test_d(self): ...\n"
        "class Other:\n    def test_e(self): ...\n"
        "@pytest.fixture(scope='module')\ndef a(): ...\n"
        "@given(params)\ndef test_f(a): ...\n"
        "if True:\n    def helper(): ...\n"
    )
    assert ids_in("test_x.py", text) == [
        "test_x.py::test_a",
        "test_x.py::TestB::test_c",
        "test_x.py::Sums::test_d",
        "test_x.py::test_f",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "def test(:\n",
        "async def test_a(): ...\n",
        "class TestA:\n    async def test_a(self): ...\n",
        "class TestA(Base):\n    pass\n",
        "@pytest.mark.parametrize('a', [1])\ndef test_a(a): ...\n",
        "@pytest.mark.skipif(True)\nclass TestA:\n    def test_a(self): ...\n",
        "class TestA:\n    @pytest.mark.xfail\n    def test_a(self): ...\n",
        "@pytest.fixture(params=[1, 2])\ndef a(request): ...\ndef test_a(a): ...\n",
        "def pytest_generate_tests(metafunc): ...\n",
        "if True:\n    def test_a(): ...\n",
        "for n in range(3):\n    async def test_a(): ...\n",
        "test_a = make()\n",
        "pytestmark = pytest.mark.skip\n",
        "from other import test_a\n",
        "from other import *\n",
        "from other import TestB as B, TestA\n",
    ],
)
def test_tests_that_only_a_run_could_name_are_refused(text):
    with pytest.raises(TaskProblem, match=r"^test_x\.py"):
        ids_in("test_x.py", text)


def test_values_that_a_scenario_cannot_have_are_told(tmp_path):
    limits = (
        "[agent]\ntimeout_sec = 1e9\n[verifier]\ntimeout_sec = true\n[metadata]\ntags = ['a', 3]\n"
        "[task]\nname = 'me/double'\nkeywords = ['b', 'b', 'c']\n[environment]\nallow_internet = false\n"
    )
    found = import_tasks(tmp_path / "suite", write_task(tmp_path / "double", {"task.toml": limits}))
    (scenario,) = scenarios_in(tmp_path / "suite").values()
    assert "timeout_s" not in json.dumps(scenario)
    assert scenario["tags"] == ["a", "b", "c"]
    keys = (
        "agent.timeout_sec",
        "verifier.timeout_sec",
        "metadata.tags",
        "task.name",
        "environment.allow_internet",
    )
    assert {f"`{key}` of a task.toml" for key in keys} <= set(found.left_out)
