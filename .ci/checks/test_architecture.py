"""The plan of the house, checked on the syntax trees: layers, cycles, one file per dependency."""

import ast
import graphlib
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import requires

import pytest
from support import ROOT
from support.syntax_trees import PACKAGE, each, modules, name_of, ours

GROUND = ("privacy", "core", "numerics", "retry", "storage", "llm", "telemetry")
OF_A_RUN = (
    *("sandbox", "metrics", "protocols", "scoring", "recording", "suite", "actors", "gate", "runs"),
    *("learning", "features", "estimate", "engine", "export", "report", "review", "launch"),
)
FACES = ("hookspecs", "plugin", "api", "cli", "")
ROOMS = (*GROUND, *OF_A_RUN, "production", "harvest", "patterns", "arena", *FACES)
"""The rooms of the package, bottom to top: each may import only those before it. The empty name is the
package itself, which only names what others hold."""
WINGS = {
    "production": ("demo", "loop", "live"),
    "harvest": ("harvest", "learn", "patterns"),
    "patterns": ("learn", "patterns"),
    "arena": ("arena",),
}
"""Rooms that can be taken away, with their folders of the command line."""
BESIDE = {"harvest": ("patterns",)}
"""Wings that build on another; without it they go too."""
LOOP = (
    "assembly",
    "deployment",
    "door",
    "evaluation",
    "imports",
    "report",
    "rewards",
    "service",
    "serving",
    "sinks",
    "training",
    "trust",
    "view",
)
MAY_NOT_SEE = {
    "core": {"numerics", "storage"},
    "storage": {"numerics", "privacy"},
    "llm": {"storage", "telemetry"},
    "telemetry.traces": {"llm", "storage", "telemetry.sinks"},
    "telemetry.sinks": {"llm", "telemetry.traces"},
    "production": {"harvest", "telemetry.sinks"},
    "production.bus": {"llm", "telemetry"},
    "production.deployment": {"production.serving", "production.training"},
    "production.live": {f"production.{room}" for room in LOOP},
    "harvest": {"production", "telemetry.sinks"},
    "patterns": {"production", "telemetry.sinks"},
    "arena": {"production", "harvest", "patterns", "telemetry.sinks"},
    **{room: {"storage", "telemetry.sinks"} for room in OF_A_RUN},
    "cli": {"plugin"},
}
"""What a room stays away from, though it stands before it."""
HOMES = {
    "jsonschema": {"core/wire/schema.py"},
    "referencing": {"core/wire/schema.py"},
    "yaml": {"suite/documents/yaml_text.py"},
    "numpy": {"numerics/arrays.py"},
    "regex": {"scoring/checks/patterns.py"},
    "jinja2": {"report/page/template.py"},
    "math_verify": {"scoring/checks/math_worker.py"},
    "rapidfuzz": {"scoring/checks/similar.py"},
    "datasets": {"suite/imports/hugging_face.py", "export/parquet.py"},
    "sympy": {"scoring/checks/math_worker.py"},
    "pyreqwest": {"llm/server/transport.py", "production/serving/upstream.py"},
    "nats": {"production/bus/nats/link.py"},
    "opentelemetry": {
        *("telemetry/sinks/otel.py", "telemetry/traces/otlp/otlp_protobuf.py"),
        "telemetry/traces/provider.py",
    },
    "prometheus_client": {"production/sinks/prometheus/exposition.py"},
    "clickhouse_connect": {"production/sinks/warehouse/clickhouse.py"},
    "fsspec": {"production/training/versions/artifacts.py"},
    "genai_prices": {"llm/vendor_prices.py"},
    "gepa": {"arena/contestants/gepa.py"},
    "ray": {"engine/executors/cluster/ray_cluster.py"},
    "starlette": {"production/service/app.py"},
    "uvicorn": {"production/service/server.py"},
    "xdist": {"plugin/distributed.py"},
    **{name: {"actors/mcp/sdk.py"} for name in ("anyio", "httpx2", "mcp", "mcp_types")},
}
"""The files that may import a heavy or optional dependency, inside a function."""
FORBIDDEN_NAMES = {"utils", "util", "helpers", "constants", "base", "manager", "types", "common", "misc"}
PASSES_ENVIRONMENT_ON = {
    *("actors/command/command.py", "engine/executors/cluster/executor.py"),
    "engine/executors/cluster/ray_cluster.py",
}
"""Hands the environment to the program that it starts, without its telemetry, and reads nothing from it."""
FINDS_FOLDERS = {"sandbox/programs/environments.py"}
"""Finds the user's cache in the environment, as Python finds the home folder."""

SCRIPTS = {
    *("scoring/runners/python/pytest_guard.py", "scoring/runners/python/pytest_reporter.py"),
    "scoring/runners/python/pytest_start.py",
    "export/harbor/check_task.py",
}
"""Run in a process of their own that imports nothing of the package, so that they are its face."""

READS_ITS_OWN_JSON = {
    *("production/bus/embedded/blocks.py", "production/assembly/dropped_traces.py"),
    "production/evaluation/evaluator.py",
    *("production/evaluation/inputs.py", "production/evaluation/kept_history.py", "storage/lease.py"),
    *("production/imports/trace_order.py", "production/span_events.py"),
    "production/training/jobs/job_store.py",
    *(
        "production/view/rows.py",
        "production/live/store/store_reading.py",
        "storage/kept_states.py",
        "production/training/versions/policies.py",
    ),  # rows of databases that it writes
    *("core/wire/schema.py", "suite/models_file.py", "suite/safety/generation.py"),  # files of the package
    *("scoring/checks/math.py", "scoring/checks/math_worker.py"),  # of its own worker
    *("actors/output.py", "scoring/checks/json_answer.py"),  # texts that it just made
    *(
        "suite/documents/json_text.py",
        "suite/documents/nodes.py",
        "production/door/named_in.py",
    ),  # single tokens
    "learning/library/experience_lines.py",  # lines that were read before
}
"""Parses only JSON that cannot be nested too deeply; JSON of others is for `core.wire.strict.load_json`."""

MAX_DEPTH = 16
"""Modules on the longest chain of imports that run when one module is loaded."""

DOCUMENTED = {"_current_frames", "_getframe"}
"""Names of Python's own that are for everybody, for all their underscore."""
NAMED_TUPLE = {"_asdict", "_fields", "_make", "_replace"}
"""Public, though their names start like private ones."""


def test_every_part_is_a_room() -> None:
    assert {module.part for module in modules().values()} <= set(ROOMS)


def test_a_room_imports_only_rooms_before_it() -> None:
    wrong = []
    for module, found in each():
        if ours(found.target) and found.target != PACKAGE and module.name != PACKAGE:
            above = ROOMS.index(found.target.split(".")[1]) > ROOMS.index(module.part)
            if above or away_from(module.name, found.target):
                wrong.append(f"{module.path}:{found.line} imports {found.target}")
    assert wrong == []


def test_only_the_command_line_names_a_wing() -> None:
    wrong = []
    for module, found in each():
        for wing, folders in WINGS.items():
            own = (wing, *(f"cli.{folder}" for folder in folders), *BESIDE.get(wing, ()))
            if within(found.target, wing) and not any(within(module.name, room) for room in own):
                wrong.append(f"{module.path}:{found.line} imports {found.target}")
    assert wrong == []


def away_from(name: str, target: str) -> bool:
    return any(
        within(name, room) and any(within(target, other) for other in others) and not within(target, room)
        for room, others in MAY_NOT_SEE.items()
    )


def within(name: str, room: str) -> bool:
    return f"{name}.".startswith(f"{PACKAGE}.{room}.")


def test_the_children_of_a_folder_form_no_circle() -> None:
    folders: dict[str, dict[str, set[str]]] = {}
    for module, found in each():
        here, there = module.name.split("."), found.target.split(".")
        same = next((n for n, (a, b) in enumerate(zip(here, there, strict=False)) if a != b), 0)
        if same:
            children = folders.setdefault(".".join(here[:same]), {})
            children.setdefault(here[same], set()).add(there[same])
    assert len(folders) > 10
    for children in folders.values():
        graphlib.TopologicalSorter(children).prepare()  # raises CycleError, which names the circle


def test_nothing_imports_the_command_line_and_only_the_plugin_knows_pytest() -> None:
    wrong = [
        f"{module.path}:{found.line} imports {found.target}"
        for module, found in each()
        if (found.target.startswith(f"{PACKAGE}.cli") and module.part not in ("cli", ""))
        or (found.target.partition(".")[0] in ("pytest", "_pytest", "pluggy") and module.part not in FACES)
        or found.target.startswith("_pytest")
    ]
    assert wrong == []


def test_no_module_uses_what_another_keeps_to_itself() -> None:
    wrong = []
    for module in modules().values():
        nodes = list(ast.walk(module.tree))
        own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
        for node in nodes:
            names: list[str] = []
            if isinstance(node, ast.ImportFrom) and ours(str(node.module)):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) not in ("self", "cls"):
                names = [node.attr]
            foreign = (
                {n for n in names if n.startswith("_") and not n.endswith("__")}
                - own
                - NAMED_TUPLE
                - DOCUMENTED
            )
            wrong += [f"{module.path}:{node.lineno} uses {name}" for name in sorted(foreign)]  # type: ignore[attr-defined]
    assert wrong == []


def imported_at_once() -> dict[str, set[str]]:
    """Return for each module which others run when it is loaded."""
    return {
        module.name: {
            found.target
            for found in module.imports
            if ours(found.target) and not found.lazy and not found.typing_only
        }
        for module in modules().values()
    }


def test_there_is_no_cycle_among_module_level_imports() -> None:
    graphlib.TopologicalSorter(imported_at_once()).prepare()  # raises CycleError, which names the cycle


def test_the_longest_chain_of_module_level_imports_is_short() -> None:
    graph = imported_at_once()

    @cache
    def depth(name: str) -> int:
        return 1 + max((depth(target) for target in graph.get(name, ())), default=0)

    deepest = max(graph, key=depth)
    assert depth(deepest) <= MAX_DEPTH, deepest


@pytest.mark.parametrize("dependency", sorted(HOMES))
def test_each_heavy_dependency_is_imported_lazily_and_in_one_file(dependency: str) -> None:
    wrong, used = [], set()
    for module, found in each():
        if found.target.partition(".")[0] == dependency and not found.typing_only:
            used.add(module.path)
            if not found.lazy or module.path not in HOMES[dependency]:
                wrong.append(f"{module.path}:{found.line}")
    assert wrong == []
    assert used == HOMES[dependency], "the table HOMES says otherwise"


def test_every_third_party_import_is_a_declared_dependency() -> None:
    lines = [line for line in requires("pytest-tfgrpo") or [] if "extra ==" not in line]
    declared = {re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in lines}
    optional = dict.fromkeys(
        (
            "clickhouse_connect",
            "datasets",
            "fsspec",
            "genai_prices",
            "gepa",
            "math_verify",
            *("anyio", "httpx2", "mcp", "mcp_types"),
            "nats",
            "opentelemetry",
            "prometheus_client",
            "pyreqwest",
            "rapidfuzz",
            "ray",
            "starlette",
            "sympy",
            "uvicorn",
            "xdist",
        )
    )
    brought = {"packaging": "pytest", "referencing": "jsonschema", "yaml": "pyyaml", **optional}
    foreign = {
        found.target.partition(".")[0]
        for _, found in each()
        if not ours(found.target) and found.target.partition(".")[0] not in sys.stdlib_module_names
    }
    missing = {
        name for name in foreign if (dist := brought.get(name, name)) is not None and dist not in declared
    }
    assert missing == set()


def test_only_the_faces_touch_the_terminal_the_arguments_and_the_environment() -> None:
    wrong = []
    for module in modules().values():
        if module.part in FACES or module.path in SCRIPTS:
            continue
        for node in ast.walk(module.tree):
            text = ast.unparse(node) if isinstance(node, ast.Attribute) else ""
            printed = isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "input", "exit")
            touched = text in ("sys.argv", "sys.exit", "sys.stdout", "sys.stderr", "sys.stdin", "os.getenv")
            environment = text == "os.environ" and module.path not in PASSES_ENVIRONMENT_ON | FINDS_FOLDERS
            if printed or touched or environment:
                wrong.append(f"{module.path}:{node.lineno}")  # type: ignore[attr-defined]
    assert wrong == []


def test_json_of_others_is_never_an_error_that_nobody_foresaw() -> None:
    wrong = []
    for module in modules().values():
        if module.path in SCRIPTS | READS_ITS_OWN_JSON:
            continue
        guarded = {
            id(call)
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Try) and any(_catches_depth(handler) for handler in node.handlers)
            for statement in node.body
            for call in ast.walk(statement)
        }
        wrong += [
            f"{module.path}:{node.lineno}: use load_json of core.wire.strict"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.Call)
            and ast.unparse(node.func) in ("json.loads", "json.load")
            and id(node) not in guarded
        ]
    assert wrong == []


def _catches_depth(handler: ast.ExceptHandler) -> bool:
    caught = "BaseException" if handler.type is None else ast.unparse(handler.type)
    return any(name in caught for name in ("RecursionError", "Exception", "BaseException"))


def test_modules_are_named_for_their_subject() -> None:
    assert [m.path for m in modules().values() if m.name.rpartition(".")[2] in FORBIDDEN_NAMES] == []


def test_a_public_type_name_means_one_thing() -> None:
    homes: dict[str, list[str]] = {}
    for module in modules().values():
        for node in module.tree.body:
            for name in types_defined(node):
                homes.setdefault(name, []).append(module.path)
    assert len(homes) > 200
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def types_defined(node: ast.stmt) -> Iterator[str]:
    """Yield the public names of the classes and type aliases that a statement defines."""
    match node:
        case ast.ClassDef(name=name):
            pass
        case ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name(id="TypeAlias")):
            pass
        case ast.Assign(targets=[ast.Name(id=name)]) if not name.isupper():
            pass
        case _:
            return
    if name[0].isupper():
        yield name


@pytest.mark.parametrize(
    "name",
    sorted(name_of(file) for file in (ROOT / PACKAGE).rglob("*.py") if "__all__" in file.read_text("utf-8")),
)
def test_a_list_of_public_names_is_sorted_and_names_what_there_is(name: str) -> None:
    module = modules()[name]
    declared: list[str] = next(
        ast.literal_eval(node.value)
        for node in module.tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    )
    # as ruff sorts them: constants, then classes, then functions
    assert declared == sorted(declared, key=lambda n: (not n.isupper(), not n[:1].isupper(), n))
    assert len(declared) == len(set(declared))
    bound = {n for node in module.tree.body for n in names_bound(node)}
    assert set(declared) <= bound


def names_bound(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef() | ast.ClassDef() | ast.AsyncFunctionDef():
            yield node.name
        case ast.Import() | ast.ImportFrom():
            yield from (alias.asname or alias.name for alias in node.names)
        case ast.Assign():
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.If():
            for part in node.body:
                yield from names_bound(part)


def test_loading_the_plugin_imports_nothing_heavy() -> None:
    heavy = ["asyncio", "email", "http", "jinja2", "jsonschema", "multiprocessing", "numpy", "regex", "yaml"]
    program = (
        "import sys, pytest; before = set(sys.modules); import pytest_tfgrpo.plugin; "
        "import pytest_tfgrpo.hookspecs; print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert loaded.isdisjoint(heavy)
    foreign = {n.partition(".")[0] for n in loaded} - {PACKAGE} - sys.stdlib_module_names
    assert foreign == set()
    own = {name.split(".")[1] for name in loaded if name.startswith(f"{PACKAGE}.")}
    assert own <= {"core", "hookspecs", "plugin"}


def test_of_the_tests_only_support_is_imported() -> None:
    tests = ROOT / "tests"
    found = [path for path in tests.rglob("*") if path.relative_to(tests).parts[0] != "support"]
    own = {path.stem for path in found if path.is_dir() or path.suffix == ".py"}
    wrong = []
    for path in tests.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = ["." * node.level + str(node.module)]
            places = {name.partition(".")[0] for name in names} & (own | {"", "tests"})
            wrong += [f"{path.relative_to(tests)}:{node.lineno}" for _ in places]  # type: ignore[attr-defined]
    assert wrong == []


def test_no_text_of_the_project_names_a_folder_of_somebodys_machine() -> None:
    home = re.compile(r"(?<![\w.])/(?:work|root|home/\w+|Users/\w+)/\w")
    texts = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "pyproject.toml"]
    texts += [path for path in (ROOT / ".ci").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    for folder in (PACKAGE, "docs", "fixtures", "prompt-packs", "benchmarks"):
        suffixes = (".py", ".md", ".yml", ".yaml", ".json", ".jsonl", ".csv", ".toml")
        texts += [path for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    named = [str(path.relative_to(ROOT)) for path in texts if home.search(path.read_text(encoding="utf-8"))]
    assert named == []
