"""The file ``batches.jsonl`` of a run: which calls are in which batch, so that none is submitted twice.

A line is written before a batch is submitted, with a tag that the batch carries, and one after it::

    {"event": "submit", "batch": "<tag>", "model": "openai:m@e", "keys": ["<key of a call>", ...]}
    {"event": "submitted", "batch": "<tag>", "id": "<the server's id>"}

Both are on disk before anything follows. A key is the digest of a call, with a number where it is made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.llm.replies.response import Malformed, parse_body


@dataclass(slots=True)
class EarlierBatch:
    """A batch of an interrupted process."""

    tag: str
    keys: tuple[str, ...]
    id: str | None = None
    """The server's; None: it is not known whether the server has it."""


class BatchLedger:
    """Knows the batches of a run, in its folder once that is known; used on the event loop only."""

    def __init__(self) -> None:
        """Begin without a file: nothing is kept until `open` is called."""
        self._path: Path | None = None
        self._whole = 0
        """Bytes of the file's whole lines, when it was read."""
        self._written = False
        self._earlier: dict[str, dict[str, EarlierBatch]] = {}

    @property
    def is_kept(self) -> bool:
        """Whether another process will find what is noted here."""
        return self._path is not None

    def open(self, path: Path) -> None:
        """Read what an interrupted process of the run has noted at `path`; raises JournalError."""
        self._path = path
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return
        except OSError as error:
            raise JournalError(f"cannot read {str(path)!r}: {error.strerror}") from error
        self._whole = data.rfind(b"\n") + 1  # what follows was being written when the process was killed
        batches: dict[str, EarlierBatch] = {}
        for number, line in enumerate(data[: self._whole].splitlines(), start=1):
            try:
                self._read(parse_body(line), batches)
            except (Malformed, ValueError, KeyError, TypeError) as error:
                raise JournalError(
                    f"{path}:{number}: not a line of a file of batches ({error}); delete the file to submit "
                    "its calls again, which are then paid for again"
                ) from error

    def _read(self, line: Mapping[str, Json], batches: dict[str, EarlierBatch]) -> None:
        tag = line["batch"]
        if line["event"] == "submitted":
            batches[tag].id = line["id"]
            return
        batch = batches[tag] = EarlierBatch(tag=tag, keys=tuple(map(str, line["keys"])))
        known = self._earlier.setdefault(line["model"], {})
        known.update(dict.fromkeys(batch.keys, batch))

    def find(self, model: str, key: str) -> EarlierBatch | None:
        """Return the last batch of an interrupted process that a call of `model` is in, or None."""
        return self._earlier.get(model, {}).get(key)

    def submit(self, tag: str, model: str, keys: Sequence[str]) -> None:
        """Note that a batch is about to be submitted; raises JournalError."""
        self._append({"event": "submit", "batch": tag, "model": model, "keys": [*keys]})

    def submitted(self, tag: str, id_: str) -> None:
        """Note that a batch was submitted, under the server's `id_`; raises JournalError."""
        self._append({"event": "submitted", "batch": tag, "id": id_})

    def _append(self, line: Mapping[str, Json]) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                if not self._written:
                    file.truncate(self._whole)
                file.write(json.dumps(line).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise JournalError(f"cannot write {str(self._path)!r}: {error.strerror}") from error
        self._written = True
