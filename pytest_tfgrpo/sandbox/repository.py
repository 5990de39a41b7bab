"""The git repository of a workspace: one commit of what its archive holds, written without git.

An agent looks into ``git log --all`` for how a fault was fixed later; here there is nothing later. No program
runs, so neither hooks nor filters nor anybody's configuration have a part in it.
"""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.python.dataclass import dataclass

if TYPE_CHECKING:
    from pytest_tfgrpo.sandbox.archives import ArchiveEntry

LEVEL = 1
COMMIT, TREE, BLOB = 1, 2, 3
NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}
WHO = b"Workspace <workspace@localhost> 946684800 +0000"
"""Author and committer at a fixed time, so that the same files give the same commit."""
MESSAGE = b"The state of the project\n"
CONFIG = b"""[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
[gc]
\tauto = 0
[user]
\tname = Workspace
\temail = workspace@localhost
"""
LONGEST_NAME = 0xFFF
"""What the index can say of a name's length."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Blob:
    """A file of the tree as the index needs it."""

    name: bytes
    mode: int
    id: bytes
    size: int


def repository_files(entries: Iterable[ArchiveEntry]) -> Mapping[str, bytes]:
    """Return the files of a ``.git`` folder, by their names in it, with one commit of `entries`."""
    pack = _Pack()
    blobs = [_blob(pack, entry) for entry in sorted(entries, key=_encoded)]
    tree = _tree(pack, [(tuple(blob.name.split(b"/")), blob) for blob in blobs])
    lines = [b"tree " + tree.hex().encode(), b"author " + WHO, b"committer " + WHO, b"", MESSAGE]
    commit = pack.add(COMMIT, b"\n".join(lines)).hex().encode()
    data, index = pack.files()
    name = f"objects/pack/pack-{hashlib.sha1(tree, usedforsecurity=False).hexdigest()}"
    return {
        "HEAD": b"ref: refs/heads/main\n",
        "config": CONFIG,
        "refs/heads/main": commit + b"\n",
        "index": _index(blobs),
        f"{name}.pack": data,
        f"{name}.idx": index,
    }


def _blob(pack: _Pack, entry: ArchiveEntry) -> _Blob:
    if entry.link is not None:
        mode, data = 0o120000, entry.link.encode("utf-8", "surrogateescape")
    else:
        mode, data = 0o100755 if entry.executable else 0o100644, entry.data
    return _Blob(name=_encoded(entry), mode=mode, id=pack.add(BLOB, data), size=len(data))


def _encoded(entry: ArchiveEntry) -> bytes:
    return entry.name.encode("utf-8", "surrogateescape")


def _tree(pack: _Pack, files: Sequence[tuple[tuple[bytes, ...], _Blob]]) -> bytes:
    """Return the id of a tree, whose files come sorted by path; as deep as a path is, at most 100 folders."""
    rows: list[tuple[bytes, bytes]] = []
    below: dict[bytes, list[tuple[tuple[bytes, ...], _Blob]]] = {}
    for parts, blob in files:
        if len(parts) == 1:
            rows.append((parts[0], b"%o %b\0%b" % (blob.mode, parts[0], blob.id)))
        else:
            below.setdefault(parts[0], []).append((parts[1:], blob))
    for name, inner in below.items():  # git sorts a folder as if its name ended with a slash
        rows.append((name + b"/", b"40000 %b\0%b" % (name, _tree(pack, inner))))
    return pack.add(TREE, b"".join(row for _, row in sorted(rows)))


class _Pack:
    """The objects of a repository, each once."""

    def __init__(self) -> None:
        self._places: dict[bytes, tuple[int, int]] = {}
        """Checksum and offset of each object, by its id."""
        self._chunks: list[bytes] = []
        self._size = 12

    def add(self, kind: int, data: bytes) -> bytes:
        """Return the id of an object, which is kept."""
        head = b"%b %d\0" % (NAMES[kind], len(data))
        id_ = hashlib.sha1(head, usedforsecurity=False)
        id_.update(data)
        found = id_.digest()
        if found not in self._places:
            chunk = _object_head(kind, len(data)) + zlib.compress(data, LEVEL)
            self._places[found] = (zlib.crc32(chunk), self._size)
            self._chunks.append(chunk)
            self._size += len(chunk)
        return found

    def files(self) -> tuple[bytes, bytes]:
        """Return the pack and its index."""
        data = b"".join([b"PACK", struct.pack(">LL", 2, len(self._places)), *self._chunks])
        data += hashlib.sha1(data, usedforsecurity=False).digest()
        places = sorted(self._places.items())
        index = b"".join(
            [
                b"\xfftOc\0\0\0\2",
                struct.pack(">256L", *_running([id_[0] for id_, _ in places])),
                *(id_ for id_, _ in places),
                *(struct.pack(">L", crc) for _, (crc, _) in places),
                *(struct.pack(">L", offset) for _, (_, offset) in places),
                data[-20:],
            ]
        )
        return data, index + hashlib.sha1(index, usedforsecurity=False).digest()


def _running(firsts: Sequence[int]) -> Iterator[int]:
    """Yield for each byte how many ids begin with it or a smaller one."""
    place = 0
    for byte in range(256):
        while place < len(firsts) and firsts[place] == byte:
            place += 1
        yield place


def _object_head(kind: int, size: int) -> bytes:
    """Return type and size of an object in a pack: 4 bits of the size, then 7 in each further byte."""
    head, size = bytearray([kind << 4 | size & 0xF]), size >> 4
    while size:
        head[-1] |= 0x80
        head.append(size & 0x7F)
        size >>= 7
    return bytes(head)


def _index(blobs: Sequence[_Blob]) -> bytes:
    """Return an index without times, so that git compares each file once with what was committed."""
    rows = [b"DIRC", struct.pack(">LL", 2, len(blobs))]
    for blob in blobs:
        flags = min(len(blob.name), LONGEST_NAME)
        row = (
            struct.pack(">10L20sH", 0, 0, 0, 0, 0, 0, blob.mode, 0, 0, blob.size, blob.id, flags) + blob.name
        )
        rows += [row, bytes(8 - len(row) % 8)]
    data = b"".join(rows)
    return data + hashlib.sha1(data, usedforsecurity=False).digest()
