"""Files that a configuration of promptfoo names: those of data are read, programs never run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.paths import confined
from pytest_tfgrpo.suite.documents.document import Refused, read_text
from pytest_tfgrpo.suite.imports.imported import Imported
from pytest_tfgrpo.suite.imports.promptfoo_values import parse_file
from pytest_tfgrpo.suite.imports.tables import FILE_MAX_BYTES

FILE = "file://"
DATA = (".txt", ".md", ".json", ".jsonl", ".yaml", ".yml", ".j2")
"""Files whose text is a value; others are programs, which an import does not run."""
PARSED = (".json", ".jsonl", ".yaml", ".yml")


@dataclass(slots=True)
class FilesBeside:
    """The files in the folder of a configuration."""

    found: Imported
    folder: Path

    def text(self, name: str, where: str) -> str | None:
        """Return the text of a file; None, noted, where it is a program or cannot be read."""
        name = name.removeprefix(FILE)
        if "://" in name:
            self.found.leave_out("addresses that promptfoo would fetch", f"{where}: {name}")
            return None
        if not name.endswith(DATA):
            self.found.leave_out("files that promptfoo would run", f"{where}: {name}")
            return None
        return self.plain(name, where)

    def plain(self, name: str, where: str) -> str | None:
        """Return the text of a file of any name; None, noted, where it cannot be read."""
        try:
            path = confined(self.folder, name.removeprefix(FILE).removeprefix("./"), FILE_MAX_BYTES)
            return read_text(path, FILE_MAX_BYTES)
        except (Refused, ValueError) as error:
            self.found.leave_out("files that cannot be read", f"{where}: {error}")
            return None

    def data(self, name: str, where: str) -> Json:
        """Return what a YAML, JSON or JSON lines file holds; None, noted, for nothing."""
        text = self.text(name, where)
        try:
            return parse_file(self.found, text, name, where) if text else None
        except Refused as error:
            at = f"{where}: {name.removeprefix(FILE)}:{error.problem.line}: {error}"
            self.found.leave_out("files that cannot be read", at)
        except ValueError as error:
            self.found.leave_out("files that cannot be read", f"{where}: {name.removeprefix(FILE)}: {error}")
        return None

    def value(self, name: str, where: str) -> Json:
        """Return the value that a file is for an assertion: its data, or its text without blanks around."""
        if name.endswith(PARSED):
            return self.data(name, where)
        text = self.text(name, where)
        return None if text is None else text.strip()
