"""Build environments: resolve a recipe as of a date, build in a cache, share between equal manifests."""

from __future__ import annotations

import fcntl
import json
import os
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import read_plain, write_atomic
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.wire import Json, from_wire, to_wire
from pytest_tfgrpo.harvest.environment.package_tools import (
    BuildProblem,
    BuildTools,
    inside,
    install,
    lock,
    make_venv,
)
from pytest_tfgrpo.harvest.environment.setup_commands import lock_node_packages, run_setup
from pytest_tfgrpo.harvest.fixes import RecipePart
from pytest_tfgrpo.harvest.recipe.node_recipe import LOCKS
from pytest_tfgrpo.harvest.recipe.own_distributions import write_distributions
from pytest_tfgrpo.harvest.recipe.recipe import OLDEST, pair
from pytest_tfgrpo.harvest.recipe.requirement_text import normal
from pytest_tfgrpo.sandbox.programs.environments import (
    BUILT,
    LARGEST,
    SETUP,
    VENV,
    BuiltEnvironment,
    Environment,
    open_built,
    stamp_of,
    to_file,
)
from pytest_tfgrpo.sandbox.removal import remove

RESOLVED = "resolved"
"""Folder of the cache with what recipes resolved to."""
LOADED_BY_PYTEST = {"iniconfig", "packaging", "pluggy", "pytest"}
"""Packages that are there before anything of a project is; a project that is one of them needs it too."""
MADE_OF = (
    *("python", "dependencies", "setup", "imports", "variables", "files"),
    *("distributions", "entry_points"),
)
"""Values of a recipe that its environment depends on."""
LATEST = 250_000_000_000
"""Seconds since 1970 that a date can hold; a commit can say anything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MadeEnvironment:
    """The environment of a recipe; without one the tests run in this interpreter, with its packages."""

    environment: Environment | None = None
    built: BuiltEnvironment | None = None
    notes: tuple[str, ...] = ()
    """What a person should know of it: that a date could not be applied."""


class EnvironmentBuilder:
    """Builds environments in a cache, which processes and threads share; a killed build is done again."""

    def __init__(self, tools: BuildTools, cache: Path) -> None:
        """`cache` is the folder of built environments, as `cache_folder` names it."""
        self._tools = tools
        self._cache = cache
        self._problems: dict[str, str] = {}

    @property
    def interpreters(self) -> tuple[str, ...]:
        """Minor versions of the Pythons on this machine."""
        return tuple(self._tools.interpreters)

    def make(self, part: RecipePart, committed_at: int) -> MadeEnvironment:
        """Return the environment of a recipe as of a commit's date, in seconds since 1970.

        Raises BuildProblem where there can be none, StoreError where the cache cannot be written.
        """
        elsewhere = set(part.imports) - {part.folder}
        if not (part.python or part.setup or part.files or part.variables or elsewhere):
            return MadeEnvironment()
        if part.command.runner == "pytest" and part.python and pair(part.python) < OLDEST:
            raise BuildProblem(
                f"the project needs Python {part.python}, and tfgrpo runs tests only with "
                f"{OLDEST[0]}.{OLDEST[1]} or later; if the project runs with that, set python in harvest.toml"
            )
        if part.command.runner == "pytest" and (own := sorted(_own(part) & LOADED_BY_PYTEST)):
            raise BuildProblem(
                f"pytest needs {own[0]}, and loads the installed one before that of the project: run the "
                'tests in a separate pytest, with runner = "command" and run = ["python", "-m", '
                '"pytest", "--junitxml={report}", "{tests}"] in harvest.toml'
            )
        until = None if part.relaxed else until_of(committed_at)
        key = self._key(part, until)
        if key in self._problems:
            raise BuildProblem(self._problems[key])
        try:
            environment, notes = self._resolved(part, until, key)
            return MadeEnvironment(environment=environment, built=self.build(environment), notes=notes)
        except BuildProblem as problem:
            self._problems[key] = str(problem)
            raise
        except StoreError:
            raise
        except OSError as error:
            raise StoreError(f"cannot write the environments in {self._cache}: {error}; make room") from error

    def build(self, environment: Environment) -> BuiltEnvironment:
        """Return an environment, built now unless it is in the cache; raises BuildProblem, StoreError."""
        try:
            return self._build(environment)
        except OSError as error:
            raise StoreError(f"cannot write the environments in {self._cache}: {error}; make room") from error

    def _build(self, environment: Environment) -> BuiltEnvironment:
        wanted = stamp_of(environment)
        if found := violations("environment", to_file(environment)):
            raise BuildProblem(
                f"the recipe makes no valid environment: {found[0].pointer}: {found[0].message}"
            )
        folder = self._cache / wanted
        if built := open_built(environment, wanted, folder):
            return built
        with self._locked(wanted):
            if built := open_built(environment, wanted, folder):
                return built
            _cleared(folder)
            self._fill(environment, folder)
        built = open_built(environment, wanted, folder)
        if built is None:
            raise BuildProblem(f"the environment {wanted[:12]} has no interpreter after it was built")
        return built

    def _fill(self, environment: Environment, folder: Path) -> None:
        """Build in an empty folder; what the host writes is written before code of packages runs."""
        venv, inner = folder / VENV, folder / SETUP
        inner.mkdir()
        for name, text in environment.files.items():
            path = inner / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        before = None
        if environment.python:
            base = self._tools.interpreter(environment.python)
            make_venv(self._tools, base, venv)
            write_distributions(environment, venv)
            before = _identity(venv)
            install(self._tools, environment, folder, venv, base)
        run_setup(self._tools, environment, folder)
        if environment.python:
            self._compile(folder, venv)
        _require_whole(environment, folder, before)
        handle = os.open(folder / BUILT, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        os.fsync(handle)
        os.close(handle)

    def _compile(self, folder: Path, venv: Path) -> None:
        """Compile the modules, as no run can write to them; a module that cannot be compiled stays so."""
        python = venv / "bin" / "python"
        inside(
            self._tools, [str(python), "-I", "-m", "compileall", "-q", str(venv / "lib")], folder, (python,)
        )

    def _resolved(self, part: RecipePart, until: str | None, key: str) -> tuple[Environment, tuple[str, ...]]:
        path = self._cache / RESOLVED / f"{key}.json"
        if (kept := _kept(path)) is not None:
            return kept
        with self._locked(key):
            if (kept := _kept(path)) is not None:
                return kept
            work = self._cache / RESOLVED / f"{key}.work"
            _cleared(work)
            try:
                environment, notes = self._resolve(part, until, work)
            finally:
                remove(work)
            data = {"environment": to_file(environment), "notes": list(notes)}
            write_atomic(path, [json.dumps(data, indent=1).encode()])
            return environment, notes

    def _resolve(
        self, part: RecipePart, until: str | None, work: Path
    ) -> tuple[Environment, tuple[str, ...]]:
        notes: tuple[str, ...] = ()
        files = dict(part.files)
        if "package.json" in files and not any(name in files for name in LOCKS):
            files, notes = lock_node_packages(self._tools, files, until, work)
            _cleared(work)
        lines: tuple[str, ...] = ()
        built_until: str | None = None
        if part.python:
            found = lock(self._tools, part.python, part.dependencies, until, work)
            own = _own(part) - LOADED_BY_PYTEST
            lines = tuple(line for line in found.lines if normal(line.partition("==")[0]) not in own)
            notes, built_until = (*notes, *found.notes), found.until
        link = "node_modules" if part.folder == "." else f"{part.folder}/node_modules"
        environment = Environment(
            python=part.python,
            lock=lines,
            files=files,
            setup=part.setup,
            imports=part.imports,
            variables=part.variables,
            links=(link,) if "package.json" in files else (),
            distributions=part.distributions,
            entry_points=part.entry_points,
            until=built_until,
        )
        return environment, notes

    def _key(self, part: RecipePart, until: str | None) -> str:
        made_of = {name: to_wire(getattr(part, name)) for name in MADE_OF}
        tool = "uv" if self._tools.uv else "pip"
        return stamp([made_of, part.folder, until, tool, sysconfig.get_platform()])

    @contextmanager
    def _locked(self, name: str) -> Iterator[None]:
        """Keep other processes and threads from the same work; the kernel frees what a killed one held."""
        self._cache.mkdir(parents=True, exist_ok=True)
        (self._cache / RESOLVED).mkdir(exist_ok=True)
        with (self._cache / f"{name}.lock").open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


def until_of(committed_at: int) -> str:
    """Return the end of a commit's month (RFC 3339): changes of one month with equal manifests share."""
    day = datetime.fromtimestamp(min(max(committed_at, 0), LATEST), UTC)
    year, month = (day.year + 1, 1) if day.month == 12 else (day.year, day.month + 1)
    return f"{year:04}-{month:02}-01T00:00:00Z"


def _kept(path: Path) -> tuple[Environment, tuple[str, ...]] | None:
    """Return what a recipe resolved to before; None where it did not, or the file is damaged."""
    try:
        data: dict[str, Json] = json.loads(read_plain(path, LARGEST))
        value = dict(data["environment"])
        if violations("environment", value):
            return None
        del value["schema"]
        return from_wire(Environment, value), tuple(map(str, data["notes"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _own(part: RecipePart) -> set[str]:
    """Return the normalised names of the project's own packages."""
    return {normal(name) for name in part.distributions}


def _cleared(folder: Path) -> None:
    """Make an empty folder in place of what a killed build left; raises OSError."""
    if left := remove(folder):
        raise OSError(f"cannot clear {folder}: {left}")
    folder.mkdir(parents=True)


def _identity(venv: Path) -> tuple[str, bytes] | None:
    """Return what decides which interpreter a virtual environment has."""
    config = venv / "pyvenv.cfg"
    if not config.exists():
        return None
    return os.path.realpath(venv / "bin" / "python"), config.read_bytes()


def _require_whole(environment: Environment, folder: Path, before: tuple[str, bytes] | None) -> None:
    """Raise BuildProblem where code of packages led the environment's own names elsewhere."""
    names = [VENV, f"{VENV}/bin", f"{VENV}/pyvenv.cfg"] if environment.python else []
    names += [SETUP, *(f"{SETUP}/{Path(name).name}" for name in environment.links)]
    for name in names:
        if (folder / name).is_symlink():
            raise BuildProblem(f"a set-up command made a link of {name}")
    if before is not None and _identity(folder / VENV) != before:
        raise BuildProblem("a set-up command changed the interpreter of the environment")
    if os.path.lexists(folder / BUILT):
        raise BuildProblem(f"a set-up command wrote {BUILT}")
    for name in environment.links:
        if not (folder / SETUP / Path(name).name).is_dir():
            raise BuildProblem(f"the set-up commands made no {Path(name).name}")
