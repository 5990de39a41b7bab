"""Small git repositories, made by fast-import from what each commit changes."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from support.tools import require_tool

ENVIRONMENT = {
    "PATH": os.defpath,
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "LC_ALL": "C.UTF-8",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@b.c",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@b.c",
}
START = 1_700_000_000


def git(folder: Path, *arguments: str | bytes, given: bytes = b"") -> str:
    """Run git with a clean environment; return what it prints."""
    done = subprocess.run(
        [require_tool("git"), *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        input=given,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    return done.stdout.decode("utf-8", "surrogateescape").strip()


class Repository:
    """A repository whose commits are given as the files that they change."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.folder = folder
        folder.mkdir()
        git(folder, "init", "-q", "--initial-branch=main", *options)
        self._count = 0

    def commit(
        self,
        files: Mapping[str | bytes, str | bytes | None],
        message: str | bytes = "Change",
        *,
        branch: str = "main",
        parents: Sequence[str] | None = None,
        modes: Mapping[str | bytes, str] | None = None,
        encoding: str = "",
    ) -> str:
        """Commit changed files (None: deleted) to a branch and return the commit's id."""
        self._count += 1
        known = git(self.folder, "for-each-ref", f"refs/heads/{branch}")
        given = [git(self.folder, "rev-parse", branch)] if known and parents is None else list(parents or ())
        text = message.encode() if isinstance(message, str) else message
        lines = [
            f"commit refs/heads/{branch}\ncommitter A <a@b.c> {START + 3600 * self._count} +0000\n".encode()
        ]
        lines += [f"encoding {encoding}\n".encode()] * bool(encoding)
        lines.append(b"data %d\n%s\n" % (len(text), text))
        for n, parent in enumerate(given):
            lines.append(f"{'merge' if n else 'from'} {parent}\n".encode())
        for path, content in files.items():
            name = _quoted(path.encode() if isinstance(path, str) else path)
            mode = (modes or {}).get(path, "100644").encode()
            if content is None:
                lines.append(b"D " + name + b"\n")
            elif mode == b"160000":
                lines.append(b"M 160000 %s %s\n" % (_raw(content), name))
            else:
                data = _raw(content)
                lines.append(b"M %s inline %s\ndata %d\n%s\n" % (mode, name, len(data), data))
        git(self.folder, "fast-import", "--quiet", "--force", given=b"".join(lines))
        return git(self.folder, "rev-parse", branch)


def _raw(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def _quoted(path: bytes) -> bytes:
    plain = all(32 < byte < 127 and byte not in b'"\\' for byte in path)
    return path if plain else b'"' + b"".join(b"\\%03o" % byte for byte in path) + b'"'


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every file below a folder, with mode and content or link."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = os.fsencode(path.readlink()) if path.is_symlink() else b""
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = (path.lstat().st_mode, content)
    return found


def remove_object(repository: Repository, name: str) -> Path:
    """Remove one object from a repository; return the file in which it was."""
    packs = repository.folder / ".git" / "objects" / "pack"
    for pack in list(packs.glob("*.pack")):
        content = pack.read_bytes()
        for part in packs.glob(f"{pack.stem}.*"):
            part.unlink()
        git(repository.folder, "unpack-objects", "-q", given=content)
    one = git(repository.folder, "rev-parse", name)
    loose = repository.folder / ".git" / "objects" / one[:2] / one[2:]
    loose.unlink()
    return loose
