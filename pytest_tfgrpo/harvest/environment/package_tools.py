"""Package tools: uv, or pip of the interpreter, lock and install requirements.

Wheels run no code, so they are resolved and installed outside of a sandbox, with the configuration of the
machine. What must be built from source runs the code of its package: in the sandbox, without secrets.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from pytest_tfgrpo.core.errors import CheckError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.text import line
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.programs.cancelling import LOOK_S, require_going
from pytest_tfgrpo.sandbox.programs.environments import Environment
from pytest_tfgrpo.sandbox.programs.programs import needed
from pytest_tfgrpo.scoring.runners.isolation import SYSTEM_PATH, IsolatedProgram, run_isolated
from pytest_tfgrpo.scoring.runners.protocol import Isolation

LOCKED = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?==(?P<version>[A-Za-z0-9.!+_-]+)(?P<rest>.*)"
)
HASH = re.compile(r"--hash=(sha256:[0-9a-f]{64})")
BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
"""Files with the certificates that the machine trusts."""
BUNDLE_NAMES = ("SSL_CERT_FILE", "PIP_CERT", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "NPM_CONFIG_CAFILE")
INDEX_NAMES = re.compile(
    r"(?:UV_(?:DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|INDEX_STRATEGY)"
    r"|PIP_(?:INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX)|NPM_CONFIG_REGISTRY"
    r"|(?:HTTPS?|ALL|NO)_PROXY)",
    re.IGNORECASE,
)
"""Variables that say where packages come from; those with a password stay outside of the sandbox."""
NOT_PASSED = re.compile(
    r"PYTHON.*|VIRTUAL_ENV|CONDA_.*|UV_PROJECT.*|UV_SYSTEM_PYTHON|GIT_.*"
    r"|PIP_(?:TARGET|USER|PREFIX|REQUIRE_VIRTUALENV)"
)
"""Variables that would make an installer work on another environment."""
WHEELS = ("--only-binary", ":all:")
QUIET_PIP = ("--disable-pip-version-check", "--no-input")
PIP, DATED_PIP = (22, 3), (26, 0)
"""Versions of pip that install into another environment, and that apply a date."""
UNDATED = "is missing an upload date"
"""What uv warns of where an index does not say when a file came."""
DRAWN = re.compile(r"^[\s×├│╰─▶>]+")
"""What uv and pip draw before the lines of an error."""
NO_REASON = re.compile(
    r"WARNING:|Looking in |hint:|note:|\[end of output\]|No solution found when resolving dependencies:?$"
)
"""Lines that say nothing of why."""
BUILD_FAILED = re.compile(r"Failed to build\b")
RAISED = re.compile(r"(?:[A-Za-z_][\w.]*(?:Error|Exception|Exit)|error|fatal)\b.*:|.*: error: ")
TAIL = 1500
"""Characters of an installer's output that an error shows."""


class BuildProblem(Exception):
    """No environment for a recipe; the message says why, with the end of what was printed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildTools:
    """What environments are built with."""

    interpreters: Mapping[str, Path]
    """By minor version."""
    uv: Path | None
    """None: pip of the interpreter."""
    environ: Mapping[str, str]
    """Variables of this process: where packages come from."""
    isolation: Isolation = "bwrap"
    timeout_s: float = 1200.0
    """Seconds of one command."""

    def interpreter(self, version: str) -> Path:
        """Return the Python of a minor version; raises BuildProblem."""
        if version not in self.interpreters:
            there = ", ".join(self.interpreters) or "none"
            raise BuildProblem(
                f"no Python {version} on this machine, which has {there}; install it, or set python in "
                "harvest.toml"
            )
        return self.interpreters[version]


def open_tools(
    interpreters: Mapping[str, Path], environ: Mapping[str, str], isolation: Isolation = "bwrap"
) -> BuildTools:
    """Return the tools of this machine: uv beside this interpreter or on the PATH, else pip."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), environ.get("PATH", os.defpath)])
    uv = shutil.which("uv", path=beside)
    return BuildTools(
        interpreters=interpreters, uv=Path(uv) if uv else None, environ=environ, isolation=isolation
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Locked:
    """Requirements with versions and hashes, and what a person should know of them."""

    lines: tuple[str, ...]
    notes: tuple[str, ...] = ()
    until: str | None = None
    """The date as of which a package must be built from source; None: there are wheels of all, or no date."""


def lock(
    tools: BuildTools, version: str, requirements: Sequence[str], until: str | None, work: Path
) -> Locked:
    """Return the lock of requirements for a Python, as of a time (RFC 3339); raises BuildProblem, OSError.

    `work` is an empty folder.
    """
    if not requirements:
        return Locked(lines=())
    python = tools.interpreter(version)
    (work / "requirements.in").write_text("".join(f"{item}\n" for item in requirements), "utf-8")
    if tools.uv is not None:
        return _lock_with_uv(tools, tools.uv, requirements, until, work, python)
    return _lock_with_pip(tools, requirements, until, work, python)


def _lock_with_uv(
    tools: BuildTools, uv: Path, requirements: Sequence[str], until: str | None, work: Path, python: Path
) -> Locked:
    argv = [
        *(str(uv), "pip", "compile", "requirements.in", "--output-file", "lock.txt", "--python", str(python)),
        *("--generate-hashes", "--no-header", "--no-annotate", "--no-python-downloads"),
    ]
    dated = ["--exclude-newer", until] if until else []
    notes: tuple[str, ...] = ()
    first = outside(tools, [*argv, *dated, *WHEELS], work)
    if dated and first[0] and UNDATED in first[1]:
        dated, notes = [], ("the package index has no upload dates: the date was not applied",)
        first = outside(tools, [*argv, *WHEELS], work)
    wanted = _some(requirements)
    code, told = else_from_source(tools, [*argv, *dated], work, (uv, python), first)
    if code:
        raise BuildProblem(f"cannot resolve {wanted}: {why_failed(told)}")
    text = _plain(work / "lock.txt")
    lines = _lines(re.sub(r"\\\n", " ", text).splitlines())
    return Locked(lines=lines, notes=notes, until=until if first[0] and dated else None)


def why_failed(told: str) -> str:
    """Return why an installer failed: of a build its package and what was raised, else the end of it all."""
    rows = [DRAWN.sub("", row).rstrip() for row in told.splitlines()]
    rows = [row for row in rows if row and not NO_REASON.match(row)]
    built = next((row for row in rows if BUILD_FAILED.search(row)), "")
    if built:
        raised = next((row for row in reversed(rows) if RAISED.match(row)), rows[-1])
        return f"{built}: {raised}"
    return "\n".join(rows)[-TAIL:]


def _digest(archive: dict[str, Json]) -> str:
    """Return the digest of what pip reports that it downloaded; before 23.1 it is one text."""
    if "hashes" in archive:
        return str(archive["hashes"]["sha256"])
    kind, _, digest = str(archive["hash"]).partition("=")
    if kind != "sha256":
        raise KeyError("sha256")
    return digest


def _lock_with_pip(
    tools: BuildTools, requirements: Sequence[str], until: str | None, work: Path, python: Path
) -> Locked:
    inner = python
    if pip_version(python) < PIP:
        make_venv(tools, python, work / "venv")
        inner = work / "venv" / "bin" / "python"
    argv = [
        *(str(inner), "-I", "-m", "pip", "install", "--dry-run", "--ignore-installed"),
        *("--report", "report.json", "-r", "requirements.in", *QUIET_PIP),
    ]
    notes: tuple[str, ...] = ()
    if until and pip_version(inner) >= DATED_PIP:
        argv += ["--uploaded-prior-to", until]
    elif until:
        notes = ("this pip cannot apply a date: it was not applied; install the extra harvest for uv",)
    first = outside(tools, [*argv, *WHEELS], work)
    code, told = else_from_source(tools, argv, work, (inner,), first)
    if code:
        hint = (
            "; this pip is too old, install the extra harvest" if "no such option: --report" in told else ""
        )
        raise BuildProblem(f"cannot resolve {_some(requirements)}{hint}: {why_failed(told)}")
    try:
        report = load_json(_plain(work / "report.json"))
        lines = [
            f"{item['metadata']['name'].lower()}=={item['metadata']['version']} "
            f"--hash=sha256:{_digest(item['download_info']['archive_info'])}"
            for item in report["install"]
        ]
    except (ValueError, KeyError, TypeError) as error:
        raise BuildProblem(f"pip's report has no hashes, so nothing can be locked: {error!r}") from error
    dated = first[0] and not notes
    return Locked(lines=_lines(lines), notes=notes, until=until if dated else None)


def _lines(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the lines of a lock, sorted; raises BuildProblem for what no hash holds."""
    lines = []
    for text in (text.strip() for text in texts):
        if not text or text.startswith(("#", "-")):
            continue
        found = LOCKED.fullmatch(text)
        hashes = HASH.findall(found["rest"]) if found else []
        if found is None or not hashes:
            raise BuildProblem(f"the package index has no sha256 for {text[:200]!r}, so it cannot be locked")
        words = (f"--hash={item}" for item in sorted(set(hashes)))
        lines.append(f"{found['name']}=={found['version']} {' '.join(words)}")
    return tuple(sorted(lines))


def _some(requirements: Sequence[str]) -> str:
    return line(", ".join(requirements), 100)


def _plain(path: Path) -> str:
    """Return the text of a file beside which code of packages may have run; raises BuildProblem."""
    if path.is_symlink() or not path.is_file():
        raise BuildProblem(f"no {path.name} was written")
    return path.read_text("utf-8", "replace")


def make_venv(tools: BuildTools, python: Path, folder: Path) -> None:
    """Make a virtual environment, with a pip where nothing else can install; raises BuildProblem."""
    argv = [str(python), "-I", "-m", "venv", str(folder)]
    if tools.uv is not None:
        argv = [
            *(str(tools.uv), "venv", "--python", str(python), str(folder)),
            *("--no-project", "--no-python-downloads"),
        ]
    elif pip_version(python) >= PIP:
        argv.append("--without-pip")
    code, told = outside(tools, argv, folder.parent)
    if code:
        raise BuildProblem(f"cannot make an environment of {str(python)!r}: {told[-TAIL:]}")


def install(tools: BuildTools, environment: Environment, folder: Path, venv: Path, base: Path) -> None:
    """Install the lock of an environment into a fresh virtual one in `folder`, made of the Python `base`.

    Where the tools of its date build nothing, those of today have to. Raises BuildProblem, OSError.
    """
    if not environment.lock:
        return
    (folder / "lock.txt").write_text("".join(f"{line}\n" for line in environment.lock), "utf-8")
    python = venv / "bin" / "python"
    if tools.uv is not None:
        # copies, as the sandbox could write to the cache through hard links
        argv = [str(tools.uv), "pip", "install", "--python", str(python), "--link-mode", "copy"]
    elif pip_version(base) >= PIP:
        argv = [str(base), "-I", "-m", "pip", "--python", str(python), "install", "--no-compile", *QUIET_PIP]
    else:
        argv = [str(python), "-I", "-m", "pip", "install", "--no-compile", *QUIET_PIP]
    argv += ["--require-hashes", "--no-deps", "-r", "lock.txt"]
    code, told = wheels_first(tools, argv, folder, (Path(argv[0]), python), _dated(tools, argv, environment))
    if code:
        raise BuildProblem(f"cannot install the packages: {why_failed(told)}")


def _dated(tools: BuildTools, argv: Sequence[str], environment: Environment) -> tuple[str, ...]:
    """Return the words that let an installer build with what is older than an environment's date."""
    if environment.until is None:
        return ()
    if tools.uv is not None:
        return ("--exclude-newer", environment.until)
    return ("--uploaded-prior-to", environment.until) if pip_version(Path(argv[0])) >= DATED_PIP else ()


@cache
def pip_version(python: Path) -> tuple[int, int]:
    """Return the version of a Python's own pip; (0, 0) without one."""
    try:
        ran = subprocess.run(
            [python, "-I", "-m", "pip", "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return 0, 0
    found = re.match(rb"pip ([0-9]+)\.([0-9]+)", ran.stdout)
    return (int(found[1]), int(found[2])) if found and not ran.returncode else (0, 0)


def wheels_first(
    tools: BuildTools, argv: Sequence[str], folder: Path, programs: Sequence[Path], dated: Sequence[str]
) -> tuple[int, str]:
    """Run an installer with wheels alone, and where that fails in the sandbox, with builds from source.

    These are tried with the words `dated` first, which choose what builds, then without.
    """
    first = outside(tools, [*argv, *WHEELS], folder)
    if first[0] and dated and not inside(tools, [*argv, *dated], folder, programs)[0]:
        return 0, ""
    return else_from_source(tools, argv, folder, programs, first)


def else_from_source(
    tools: BuildTools, argv: Sequence[str], folder: Path, programs: Sequence[Path], first: tuple[int, str]
) -> tuple[int, str]:
    """Return how an installer ended with wheels alone, and where that failed, in the sandbox from source."""
    if not first[0]:
        return first
    return inside(tools, argv, folder, programs)  # what failed with wheels alone is no reason any more


def outside(tools: BuildTools, argv: Sequence[str], folder: Path) -> tuple[int, str]:
    """Run an installer that runs no code of packages; returns its exit code and what it printed.

    Raises Cancelled.
    """
    environ = {name: value for name, value in tools.environ.items() if not NOT_PASSED.fullmatch(name)}
    with tempfile.TemporaryFile() as told:
        process = subprocess.Popen(
            argv, cwd=folder, env=environ, stdin=subprocess.DEVNULL, stdout=told, stderr=subprocess.STDOUT
        )
        try:
            code = _ended(process, tools.timeout_s)
        finally:
            process.kill()
            process.wait()
        if code is None:
            return 1, f"{Path(argv[0]).name} took over {tools.timeout_s:g} s"
        told.seek(0)
        return code, told.read().decode("utf-8", "replace").strip()


def _ended(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """Return the exit code of a process; None when it takes longer. Raises Cancelled."""
    deadline = time.monotonic() + timeout_s
    while (left := deadline - time.monotonic()) > 0:
        require_going()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(left, LOOK_S))
    return None


def inside(
    tools: BuildTools, argv: Sequence[str], folder: Path, programs: Sequence[Path], where: str = "."
) -> tuple[int, str]:
    """Run a program that may run code of packages: it has the network, no secrets, and writes `folder`."""
    search = os.pathsep.join(dict.fromkeys([*(str(path.parent) for path in programs), SYSTEM_PATH]))
    environ, shown = _scrubbed(tools.environ)
    readable = [path for program in programs for path in needed([str(program)], search, folder)]
    try:
        program = IsolatedProgram(
            argv=argv,
            tree=folder,
            folder=where,
            readable=tuple(
                dict.fromkeys(path for path in (*readable, *shown) if not path.is_relative_to(folder))
            ),
            environment={**environ, "PATH": search, "UV_LINK_MODE": "copy", "UV_PYTHON_DOWNLOADS": "never"},
            isolation=tools.isolation,
            network="host",
        )
        ran = run_isolated(program, timeout_s=tools.timeout_s)
    except CheckError as error:
        raise BuildProblem(f"package code runs only in a sandbox: {error}") from error
    if ran.stopped:
        return 1, f"{ran.output}\nended: over its limit of {ran.stopped}"
    return ran.code or 0, ran.output.strip()


def _scrubbed(environ: Mapping[str, str]) -> tuple[dict[str, str], list[Path]]:
    """Return the variables for a sandbox, none with a password, and the folders that they name."""
    kept = {
        name: value
        for name, value in environ.items()
        if INDEX_NAMES.fullmatch(name) and not re.search(r"://[^/\s]*@", value)
    }
    bundle = next((path for path in BUNDLES if Path(path).is_file()), None)
    kept |= dict.fromkeys(BUNDLE_NAMES, bundle) if bundle else {}
    named = [Path(word.removeprefix("file://")) for value in kept.values() for word in value.split()]
    return kept, [path for path in named if path.is_absolute() and path.is_dir()]
