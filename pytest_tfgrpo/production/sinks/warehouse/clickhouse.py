"""The client of a ClickHouse server: statements as text, rows as lines of JSON.

The one file that imports ``clickhouse_connect``, inside a function.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from pytest_tfgrpo.core.errors import SettingError, StoreError

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

_SILENT = logging.NullHandler()
CONNECT_S, ANSWER_S = 5, 20
"""How long the server may take; a service that is to stop waits for longer."""
_REFUSALS = frozenset({6, 26, 27, 33, 38, 41, 53, 69, 70, 72, 117, 130, 131, 321, 349, 376, 441, 469, 675})
"""Codes of errors that come of what a row holds: it cannot be parsed, or does not fit its column.

See ClickHouse's ``src/Common/ErrorCodes.cpp``.
"""


class ClickHouse:
    """A connection; every method raises StoreError where the server does not answer, or refuses."""

    def __init__(self, client: Client, place: str) -> None:
        """`place` is what errors call the server."""
        self._client, self._place = client, place

    def run(self, statement: str) -> None:
        """Run a statement that returns nothing."""
        with _named(self._place):
            self._client.command(statement)

    def values(self, query: str) -> list[str]:
        """Return the values of a query of one column, none of which has a line break."""
        with _named(self._place):
            return self._client.raw_query(query, fmt="TSV").decode().splitlines()

    def insert(self, table: str, columns: Sequence[str], lines: Sequence[str]) -> str:
        """Store rows; return what the server says where it refuses them for what they hold, and stores none.

        An empty text: they are stored.
        """
        with _named(self._place):
            try:
                self._client.raw_insert(table, list(columns), "\n".join(lines), fmt="JSONEachRow")
            except Exception as error:
                if getattr(error, "code", None) in _REFUSALS:
                    return str(error)
                raise
        return ""

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


@contextmanager
def _named(place: str) -> Iterator[None]:
    """Make errors of the client, and of what it rests on, errors of ours."""
    try:
        yield
    except Exception as error:
        said = " ".join(str(error).split())[:300]
        raise StoreError(f"warehouse {place}: {said or type(error).__name__}") from error


def open_clickhouse(url: str) -> ClickHouse:
    """Return a connection to the server of ``[warehouse] url``; raises StoreError and SettingError."""
    try:
        from clickhouse_connect import get_client
    except ImportError as error:
        raise SettingError(
            "[warehouse] url needs ClickHouse's client: pip install 'pytest-tfgrpo[clickhouse]'"
        ) from error
    logging.getLogger("clickhouse_connect").addHandler(_SILENT)  # it logs each failure, which is raised too
    found = urlsplit(url)
    place = f"{found.hostname}{f':{found.port}' if found.port else ''}"
    with _named(place):
        client = get_client(
            host=found.hostname,
            port=found.port or 0,
            username=unquote(found.username or "") or None,
            password=unquote(found.password or ""),
            database=found.path.strip("/") or "default",
            interface=found.scheme,
            connect_timeout=CONNECT_S,
            send_receive_timeout=ANSWER_S,
            query_retries=0,
            autogenerate_session_id=False,
        )
    return ClickHouse(client, place)
