"""Bubblewrap: the one builder of sandboxes; a sandbox shows a program what it needs and what is listed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.python.dataclass import dataclass

PROBE_TIMEOUT_S = 10.0
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
"""Folders of programs and libraries; a link among them stays one."""
ETC = ("alternatives", "group", "ld.so.cache", "localtime", "passwd")
"""What programs read of /etc; each mount takes some tenths of a millisecond per rollout."""
ETC_NETWORK = (
    "ca-certificates/extracted", "crypto-policies", "gai.conf", "hosts", "nsswitch.conf", "pki/ca-trust",
    "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "resolv.conf", "services", "ssl/cert.pem",
    "ssl/certs", "ssl/openssl.cnf",
)  # fmt: skip
"""What they read of it to reach others; not all of ssl and pki, where keys are."""
KERNEL = ("sys", "fs", "irq", "mtrr")
"""Entries of /proc through which root, in a sandbox too, could change the machine, and bubblewrap lets it."""
HOME = "/tmp"
"""Home of a program in a sandbox: like all of its /tmp it is its own, and gone with it."""
PROBE = "if (: >> /proc/sys/kernel/core_pattern) 2> /dev/null; then exit 99; fi"
"""Opens a kernel setting for writing, and writes nothing."""

Network: TypeAlias = Literal["none", "loopback", "host"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sandbox:
    """What a sandboxed program can see, write and reach, besides the system's programs and its workspace."""

    bwrap: str
    """Path of bubblewrap."""
    readable: tuple[Path, ...] = ()
    """Files and folders to read."""
    writable: tuple[Path, ...] = ()
    """Files and folders to write; one inside a readable folder too."""
    hidden: tuple[Path, ...] = ()
    """Folders to be empty where they lie in a system folder, unless a listed path holds them."""
    network: Network = "none"
    limited: tuple[str, ...] = ()
    """Words before the program that run it with limits."""

    def argv(self, program: Sequence[str], workspace: Path | None) -> list[str]:
        """Return the command line that runs `program` in this sandbox, in `workspace`, which it can write."""
        inside = ["--bind", str(workspace), str(workspace), "--chdir", str(workspace)] if workspace else []
        return [self.bwrap, *_always(self), *inside, "--remount-ro", "/", "--", *self.limited, *program]

    def environment(self, search: str, passed: Mapping[str, str]) -> dict[str, str]:
        """Return the environment in this sandbox: of PATH what can be seen there, and what is `passed`."""
        return {"PATH": _path(self, search), "HOME": HOME, "TMPDIR": HOME, "LANG": "C.UTF-8", **passed}


@cache
def _always(sandbox: Sandbox) -> tuple[str, ...]:
    """Return the arguments that are the same for every workspace."""
    isolation = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if sandbox.network == "host":
        isolation.append("--share-net")
    return (*isolation, *_system(sandbox), *_listed(sandbox))


def _system(sandbox: Sandbox) -> Iterator[str]:
    for folder in map(Path, SYSTEM):
        yield from _shown(folder)
    for name in (*ETC, *(ETC_NETWORK if sandbox.network != "none" else ())):
        yield from _shown(Path("/etc") / name)
    yield from ("--dev", "/dev", "--proc", "/proc")
    for name in KERNEL:
        yield from _shown(Path("/proc") / name)
    yield from ("--tmpfs", "/tmp")


def _shown(path: Path) -> tuple[str, ...]:
    """Return the arguments that show a path of the system, as a link if it is one into a system folder."""
    if path.is_symlink() and path.resolve().is_relative_to("/usr"):
        return ("--symlink", str(path.readlink()), str(path))
    return ("--ro-bind", str(path), str(path)) if path.exists() else ()


@cache
def _path(sandbox: Sandbox, search: str) -> str:
    seen = [*map(Path, SYSTEM), *sandbox.readable, *sandbox.writable]
    folders = [
        folder
        for folder in search.split(os.pathsep)
        if any(Path(folder).is_relative_to(path) or path.is_relative_to(folder) for path in seen)
    ]
    return os.pathsep.join(folders) or os.defpath


def _listed(sandbox: Sandbox) -> Iterator[str]:
    """Yield the mounts of listed paths, outer folders first; none that changes nothing."""
    listed = [*sandbox.readable, *sandbox.writable]
    masks = [
        path
        for path in sandbox.hidden
        if path.is_dir() and not any(path.is_relative_to(kept) for kept in listed)
    ]
    ways = dict.fromkeys(masks, "--tmpfs") | dict.fromkeys(sandbox.readable, "--ro-bind")
    ways |= dict.fromkeys(sandbox.writable, "--bind")
    mounted = [(Path(folder), "--ro-bind") for folder in SYSTEM if Path(folder).is_dir()]
    for path in sorted(ways, key=lambda path: path.parts):
        way = ways[path]
        above = [outer for outer in mounted if path.is_relative_to(outer[0])]
        around = max(above, key=lambda outer: len(outer[0].parts))[1] if above else "--tmpfs"
        if around != way:
            mounted.append((path, way))
            yield from ((way, str(path)) if way == "--tmpfs" else (way, str(path), str(path)))


def open_bwrap() -> str:
    """Return the path of a bubblewrap that works here; raises ActorError saying what to do."""
    program = shutil.which("bwrap")
    if program is None:
        raise ActorError(
            "sandbox=bwrap needs bubblewrap, which is not installed; install it "
            "(apt-get install bubblewrap, dnf install bubblewrap) or set sandbox=none"
        )
    probe = Sandbox(bwrap=program).argv(["/bin/sh", "-c", PROBE], None)
    try:
        ran = subprocess.run(probe, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_TIMEOUT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ActorError(f"sandbox=bwrap: {program} does not start: {error}") from error
    if ran.returncode == 99:
        raise ActorError(
            "sandbox=bwrap: an agent could change kernel settings in /proc/sys here; run as an ordinary "
            "user, or set sandbox=none"
        )
    if ran.returncode != 0:
        reason = ran.stderr.decode("utf-8", "replace").strip()
        raise ActorError(
            f"sandbox=bwrap: {program} cannot make a sandbox here: {reason!r}; "
            "allow user namespaces, or set sandbox=none"
        )
    return program
