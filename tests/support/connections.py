"""SQLite connections that must be closed: Python 3.13 warns of others, and here each version does."""

from __future__ import annotations

import sqlite3
import sys
import warnings
from typing import Any


class CheckedConnection(sqlite3.Connection):
    """Warns where it is let go of before it is closed."""

    _is_open = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._is_open = True

    def close(self) -> None:
        """Close the connection."""
        super().close()
        self._is_open = False

    def __del__(self) -> None:
        if self._is_open:
            warnings.warn(f"unclosed database in {self!r}", ResourceWarning, source=self, stacklevel=1)


def check_connections() -> None:
    """Have `sqlite3.connect` make connections that warn."""
    if sys.version_info < (3, 13):
        connect = sqlite3.connect

        def checked(*args: Any, **options: Any) -> sqlite3.Connection:
            opened: sqlite3.Connection = connect(*args, **{"factory": CheckedConnection, **options})
            return opened

        sqlite3.connect = checked  # type: ignore[assignment]


def is_closed(connection: sqlite3.Connection) -> bool:
    """Return whether a connection is closed."""
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return True
    return False
