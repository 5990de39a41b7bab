"""Bubblewrap: the one builder of sandboxes; a sandbox shows a program what it needs and what is listed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_tfgrpo.core.errors import ActorError

PROBE_TIMEOUT_S = 10.0
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
"""Folders of programs and libraries; a link among them stays one."""
NO_SYSTEM = (Path("/usr/src"), Path("/usr/home"))
"""Folders below those where people keep their own files."""
ETC = (
    "alternatives", "ca-certificates/extracted", "crypto-policies", "group", "host.conf", "hosts",
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "passwd", "perl",
    "pki/ca-trust", "pki/tls/cert.pem", "pki/tls/certs", "pki/tls/openssl.cnf", "protocols", "services",
    "ssl/cert.pem", "ssl/certs", "ssl/openssl.cnf", "terminfo", "timezone",
)  # fmt: skip
"""What programs read of /etc; nothing here is a secret, so not all of ssl."""
ETC_NETWORK = ("gai.conf", "resolv.conf")
KERNEL = ("sys", "irq", "bus", "fs", "mtrr", "sysrq-trigger")
"""Entries of /proc through which root, in a sandbox too, could change the machine."""
HOME = "/tmp"
"""Home of a program in a sandbox: like all of its /tmp it is its own, and gone with it."""
PROBE = "if (: >> /proc/sys/kernel/core_pattern) 2> /dev/null; then exit 99; fi"
"""Opens a kernel setting for writing, and writes nothing."""

Network: TypeAlias = Literal["none", "host"]


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

    def argv(self, program: Sequence[str], workspace: Path | None) -> list[str]:
        """Return the command line that runs `program` in this sandbox, in `workspace`, which it can write."""
        isolation = ["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"]
        if self.network == "host":
            isolation.append("--share-net")
        inside = ["--chdir", str(workspace)] if workspace else []
        return [
            self.bwrap,
            *isolation,
            *self._mounts(workspace),
            *inside,
            "--remount-ro",
            "/",
            "--",
            *program,
        ]

    def environment(self, search: str, passed: Mapping[str, str]) -> dict[str, str]:
        """Return the environment in this sandbox: of PATH what can be seen there, and what is `passed`."""
        seen = [*map(Path, SYSTEM), *self.readable, *self.writable]
        folders = [
            folder
            for folder in search.split(os.pathsep)
            if folder.startswith("/")
            and any(Path(folder).is_relative_to(path) or path.is_relative_to(folder) for path in seen)
        ]
        path = os.pathsep.join(folders) or os.defpath
        return {"PATH": path, "HOME": HOME, "TMPDIR": HOME, "LANG": "C.UTF-8", **passed}

    def _mounts(self, workspace: Path | None) -> Iterator[str]:
        for folder in SYSTEM:
            if os.path.islink(folder):  # noqa: PTH114
                yield from ("--symlink", os.readlink(folder), folder)  # noqa: PTH115
            elif os.path.isdir(folder):  # noqa: PTH112
                yield from ("--ro-bind", folder, folder)
        for name in (*ETC, *(ETC_NETWORK if self.network == "host" else ())):
            if os.path.exists(f"/etc/{name}"):  # noqa: PTH110
                yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")
        yield from ("--dev", "/dev", "--proc", "/proc")
        for name in KERNEL:
            if os.path.exists(f"/proc/{name}"):  # noqa: PTH110
                yield from ("--ro-bind", f"/proc/{name}", f"/proc/{name}")
        yield from ("--tmpfs", "/tmp")
        writable = (*self.writable, *([workspace] if workspace else []))
        for path, way in _ordered(self.hidden, self.readable, writable):
            yield from ((way, str(path)) if way == "--tmpfs" else (way, str(path), str(path)))


def _ordered(
    hidden: Iterable[Path], readable: Iterable[Path], writable: Iterable[Path]
) -> Iterator[tuple[Path, str]]:
    """Yield the mounts that change something, outer folders first; the strongest of equal paths."""
    listed = [*readable, *writable]
    masks = [
        path
        for path in (*NO_SYSTEM, *hidden)
        if path.is_dir() and not any(path.is_relative_to(kept) for kept in listed)
    ]
    ways = dict.fromkeys(masks, "--tmpfs") | dict.fromkeys(readable, "--ro-bind")
    ways |= dict.fromkeys(writable, "--bind")
    mounted = [(Path(folder), "--ro-bind") for folder in SYSTEM if Path(folder).is_dir()]
    for path in sorted(ways, key=lambda path: path.parts):
        way = ways[path]
        above = [outer for outer in mounted if path.is_relative_to(outer[0])]
        around = max(above, key=lambda outer: len(outer[0].parts))[1] if above else "--tmpfs"
        if around != way:
            mounted.append((path, way))
            yield path, way


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
