"""Archives: deterministic tar.gz files of a tree, and a reader that trusts nothing in them.

The reader knows the little of tar that a tree of files and links needs; all else is refused, not skipped.
"""

from __future__ import annotations

import gzip
import io
import re
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.sandbox.tree_writer import TreeWriter

MAX_BYTES = 1_000_000_000
"""Bytes of all files of an archive, unpacked."""
MAX_FILES = 100_000
NAME_BYTES, PART_BYTES, DEEPEST = 1000, 255, 100
"""Bytes of a name and of one part of it, and folders on the way to a file."""
BLOCK = 512
EXTENDED_BYTES = 65_536
"""Bytes of a header that holds a long name."""
OVERHEAD = 4096
"""Bytes of headers and padding that an archive may have for each file, on average."""
LEVEL = 6
GZIP_HEADER = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""No name, no time, no system: the same on every machine."""
FILE, LINK, FOLDER, EXTENDED, GLOBAL, LONG_NAME, LONG_LINK = b"0", b"2", b"5", b"x", b"g", b"L", b"K"
NAMED = re.compile(rb"\d+ ([^=]+)=")
KINDS = {
    b"1": "a hard link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"S": "a sparse file",
    b"V": "a volume label",
    b"M": "a part of a file",
}


class ArchiveProblem(ValueError):
    """An archive that cannot be made, or is not read: damaged, too large, or with what may do harm."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ArchiveEntry:
    """A file or a link of an archive."""

    name: str
    """Path relative to the tree, with forward slashes; bytes that are not UTF-8 as surrogates."""
    data: bytes = b""
    """Content of a file; empty for a link."""
    executable: bool = False
    link: str | None = None
    """Where a symbolic link leads, relative to its folder; None: a file."""


def pack(entries: Iterable[ArchiveEntry], level: int = LEVEL) -> bytes:
    """Return the archive of a tree: the same bytes for the same files in any order, times and owners 0.

    `level` is zlib's, from 1 (fast) to 9. Raises ArchiveProblem on what `read_archive` would refuse.
    """
    tree, crc, size, room = _Tree(MAX_FILES), 0, 0, MAX_BYTES
    deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    chunks = [GZIP_HEADER]
    for entry in sorted(entries, key=lambda entry: _encoded(entry.name)):
        tree.add(entry)
        room -= len(entry.data)
        if room < 0:
            raise ArchiveProblem(f"the files have more than {MAX_BYTES} bytes; leave large ones out")
        for part in (*_headers(entry), entry.data, bytes(-len(entry.data) % BLOCK)):
            crc, size = zlib.crc32(part, crc), size + len(part)
            chunks.append(deflate.compress(part))
    end = bytes(2 * BLOCK)
    chunks += [deflate.compress(end), deflate.flush()]
    chunks.append(struct.pack("<LL", zlib.crc32(end, crc), (size + len(end)) & 0xFFFFFFFF))
    return b"".join(chunks)


def read_archive(
    path: Path, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES
) -> Iterator[ArchiveEntry]:
    """Yield the files and links of a tar.gz; folders are left out.

    Raises ArchiveProblem, with the file's name, where it is damaged, has more than `max_bytes` of files or
    more than `max_files` of them, or holds devices, pipes, hard links, names or links that leave the tree,
    two entries of one name, or a ``.git``; OSError where it cannot be opened.
    """
    with path.open("rb") as file:
        try:
            yield from read_entries(file, max_bytes=max_bytes, max_files=max_files)
        except ArchiveProblem as error:
            raise ArchiveProblem(f"{path.name}: {error}") from None


def read_entries(
    file: BinaryIO, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES
) -> Iterator[ArchiveEntry]:
    """Yield the files and links of an open tar.gz; as `read_archive`, without the file's name."""
    source = _Source(file, max_bytes + OVERHEAD * (max_files + 16))
    tree = _Tree(max_files)
    room = max_bytes
    for header in _members(source):
        if header.size > room:
            raise ArchiveProblem(f"its files have more than {max_bytes} bytes")
        room -= header.size
        entry = _entry(header, source)
        if entry is not None:
            tree.add(entry)
            yield entry
    source.drain()


def unpack(path: Path, folder: Path, *, max_bytes: int = MAX_BYTES, max_files: int = MAX_FILES) -> None:
    """Lay the files of an archive over a folder, whatever an agent left there; raises as `read_archive`.

    What stands in the way of an entry is removed; nothing is written through a link. A new folder is only
    complete when this returns.
    """
    lay(read_archive(path, max_bytes=max_bytes, max_files=max_files), folder)


def lay(entries: Iterable[ArchiveEntry], folder: Path) -> None:
    """Write entries into a folder, replacing what stands in the way; raises ArchiveProblem, OSError."""
    with TreeWriter(folder) as writer:
        for entry in entries:
            check_member(entry.name)
            if entry.link is None:
                writer.file(entry.name, entry.data, executable=entry.executable)
            else:
                check_link(entry.name, entry.link)
                writer.link(entry.name, entry.link)


def check_member(name: str) -> None:
    """Raise ArchiveProblem unless `name` is a relative path that stays in its folder, and not in a ``.git``.

    Other than `paths.check_name` it accepts what a repository may hold: control characters, backslashes.
    """
    data = _encoded(name)
    parts = data.split(b"/")
    if b"\0" in data or not all(part not in (b"", b".", b"..") for part in parts):
        raise ArchiveProblem(f"{short(name)} must be a plain relative path that stays in its folder")
    if any(part.lower() == b".git" for part in parts):
        raise ArchiveProblem(
            f"{short(name)} lies in a repository; leave .git out: a workspace gets a repository of its own"
        )
    if len(data) > NAME_BYTES or len(parts) > DEEPEST or max(map(len, parts)) > PART_BYTES:
        raise ArchiveProblem(f"{short(name)} is too long or too deep")


def check_link(name: str, target: str) -> None:
    """Raise ArchiveProblem unless a link stays in the tree, whatever other links there are.

    So ``..`` may only lead up at its start: behind the name of a link it would go up from somewhere else.
    """
    data = _encoded(target)
    parts = [part for part in data.split(b"/") if part not in (b"", b".")]
    ups = next((i for i, part in enumerate(parts) if part != b".."), len(parts))
    safe = bool(data) and not data.startswith(b"/") and b"\0" not in data and len(data) <= NAME_BYTES
    inside = ups < len(PurePosixPath(name).parts) and b".." not in parts[ups:]
    if not safe or not inside or any(part.lower() == b".git" for part in parts):
        raise ArchiveProblem(f"the link {short(name)} leads out of the tree, to {short(target)}")


class _Tree:
    """The names that were seen: no two entries share one, and none lies below a file or a link."""

    def __init__(self, max_files: int) -> None:
        self._room = self._max = max_files
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def add(self, entry: ArchiveEntry) -> None:
        name = entry.name
        check_member(name)
        if entry.link is not None:
            check_link(name, entry.link)
        if name in self._files or name in self._folders:
            raise ArchiveProblem(f"{short(name)} is there twice")
        folder = name.rpartition("/")[0]
        while folder and folder not in self._folders:
            if folder in self._files:
                raise ArchiveProblem(f"{short(name)} lies below {short(folder)}, which is not a folder")
            self._folders.add(folder)
            if len(self._folders) > self._max:
                raise ArchiveProblem(f"there are more than {self._max} folders")
            folder = folder.rpartition("/")[0]
        self._files.add(name)
        self._room -= 1
        if self._room < 0:
            raise ArchiveProblem(f"there are more than {self._max} files")


def _encoded(name: str) -> bytes:
    try:
        return name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ArchiveProblem(f"{short(name)} is not a name for a file") from None


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


# Write


def _headers(entry: ArchiveEntry) -> tuple[bytes, ...]:
    """Return the header of an entry, behind an extended one where a name does not fit into it."""
    name, link = _encoded(entry.name), _encoded(entry.link or "")
    kind, mode = (FILE, 0o755 if entry.executable else 0o644) if entry.link is None else (LINK, 0o777)
    long = [(key, value) for key, value in ((b"path", name), (b"linkpath", link)) if len(value) > 100]
    header = _header(name[:100], kind, mode, len(entry.data), link[:100])
    if not long:
        return (header,)
    data = b"".join(_record(key, value) for key, value in long)
    return (_header(b"././@PaxHeader", EXTENDED, 0, len(data)), data, bytes(-len(data) % BLOCK), header)


def _record(key: bytes, value: bytes) -> bytes:
    """Return a record of an extended header, which begins with its own length."""
    rest = b" " + key + b"=" + value + b"\n"
    size = len(rest) + 1
    while len(str(size)) + len(rest) != size:
        size += 1
    return str(size).encode() + rest


def _header(name: bytes, kind: bytes, mode: int, size: int, link: bytes = b"") -> bytes:
    fields = struct.pack(
        "100s8s8s8s12s12s8s1s100s6s2s32s32s8s8s155s12x",
        *(name, b"%07o\0" % mode, b"0000000\0", b"0000000\0", b"%011o\0" % size, b"00000000000\0"),
        *(b" " * 8, kind, link, b"ustar\0", b"00", b"", b"", b"0000000\0", b"0000000\0", b""),
    )
    return fields[:148] + b"%06o\0 " % sum(fields) + fields[156:]


# Read


@dataclass(frozen=True, kw_only=True, slots=True)
class _Header:
    name: bytes
    kind: bytes
    mode: int
    size: int
    link: bytes


class _Source:
    """The bytes of a compressed file, of which only so many are unpacked."""

    def __init__(self, file: BinaryIO, room: int) -> None:
        self._file = io.BufferedReader(gzip.GzipFile(fileobj=file), 262_144)
        self._room = room

    def read(self, size: int) -> bytes:
        """Return exactly `size` bytes; raises ArchiveProblem."""
        self._room -= size
        if self._room < 0:
            raise ArchiveProblem("it is far larger than its files")
        try:
            data = self._file.read(size)
        except (OSError, EOFError, zlib.error) as error:
            raise ArchiveProblem(f"it is not a tar.gz, or damaged: {error}") from None
        if len(data) != size:
            raise ArchiveProblem("it ends too early")
        return data

    def content(self, size: int) -> bytes:
        """Return `size` bytes, and pass over what fills their last block."""
        data = self.read(size)
        if padding := -size % BLOCK:
            self.read(padding)
        return data

    def drain(self) -> None:
        """Read on to the end, so that a damaged one is seen; raises ArchiveProblem."""
        try:
            while data := self._file.read(65_536):
                self._room -= len(data)
                if self._room < 0 or data.strip(b"\0"):
                    raise ArchiveProblem("there is more behind its end")
        except (OSError, EOFError, zlib.error) as error:
            raise ArchiveProblem(f"it is not a tar.gz, or damaged: {error}") from None


def _members(source: _Source) -> Iterator[_Header]:
    """Yield the headers of what is no header itself; who takes one reads its content before the next."""
    longer: dict[bytes, bytes] = {}
    while (block := source.read(BLOCK)).strip(b"\0"):
        header = _parse(block)
        if header.kind in (EXTENDED, GLOBAL, LONG_NAME, LONG_LINK):
            if header.size > EXTENDED_BYTES:
                raise ArchiveProblem("a name in it is too long")
            longer |= _extended(header.kind, source.content(header.size))
            continue
        yield _Header(
            name=longer.get(b"path", header.name),
            kind=header.kind,
            mode=header.mode,
            size=header.size,
            link=longer.get(b"linkpath", header.link),
        )
        longer = {}


def _parse(block: bytes) -> _Header:
    total = sum(block) - sum(block[148:156]) + 8 * 32
    if _number(block[148:156]) != total:
        raise ArchiveProblem("it is not a tar.gz, or damaged: a header's sum is wrong")
    name, kind, link = _text(block[:100]), block[156:157], _text(block[157:257])
    if block[257:263] == b"ustar\0" and (prefix := _text(block[345:500])):
        name = prefix + b"/" + name
    kind = FILE if kind in (b"\0", b"7") else kind
    size = _number(block[124:136]) if kind not in (LINK, FOLDER) else 0
    return _Header(name=name, kind=kind, mode=_number(block[100:108]), size=size, link=link)


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _number(field: bytes) -> int:
    digits = field.strip(b"\0 ")
    if not re.fullmatch(rb"[0-7]*", digits):
        raise ArchiveProblem(f"it is not a tar.gz, or damaged: {short(digits)} is not an octal number")
    return int(digits or b"0", 8)


def _extended(kind: bytes, data: bytes) -> dict[bytes, bytes]:
    """Return the name and the link that an extended header holds."""
    if kind in (LONG_NAME, LONG_LINK):
        return {b"path" if kind == LONG_NAME else b"linkpath": _text(data)}
    found: dict[bytes, bytes] = {}
    while data:
        match = NAMED.match(data)
        size = int(data.partition(b" ")[0]) if match and match.start(1) < 12 else 0
        if match is None or not match.end() < size <= len(data) or data[size - 1 : size] != b"\n":
            raise ArchiveProblem("it is not a tar.gz, or damaged: an extended header is malformed")
        found[match[1]] = data[match.end() : size - 1]
        data = data[size:]
    if b"size" in found or any(key.startswith(b"GNU.sparse") for key in found):
        raise ArchiveProblem("it holds a sparse file, or a file that is too large")
    if kind == GLOBAL:
        if b"path" in found or b"linkpath" in found:
            raise ArchiveProblem("all its files have one name")
        return {}
    return {key: value for key, value in found.items() if key in (b"path", b"linkpath")}


def _entry(header: _Header, source: _Source) -> ArchiveEntry | None:
    """Return the entry of a header, None for a folder; raises ArchiveProblem."""
    name = _decoded(header.name).removeprefix("./")
    if header.kind == FOLDER:
        if name.rstrip("/") not in ("", "."):
            check_member(name.rstrip("/"))
        return None
    if header.kind == LINK:
        return ArchiveEntry(name=name, link=_decoded(header.link))
    if header.kind == FILE:
        return ArchiveEntry(name=name, data=source.content(header.size), executable=bool(header.mode & 0o100))
    raise ArchiveProblem(f"{short(name)} is {KINDS.get(header.kind, 'of a kind that is not known')}")
