"""The command ``tfgrpo view``: the page of a run in the browser, also while the run goes on."""

from __future__ import annotations

import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from pytest_tfgrpo.cli.lookup import find_run, read_report
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import Project, project_of
from pytest_tfgrpo.cli.runs.rendering import rendered
from pytest_tfgrpo.cli.view_server import PageServer, WebAnswer, serve
from pytest_tfgrpo.core.errors import JournalError, TfgrpoError
from pytest_tfgrpo.core.files import DETAILS, JOURNAL, LABELS, REPORT_HTML, REPORT_JSON
from pytest_tfgrpo.core.texts.text import block, line
from pytest_tfgrpo.report.live_view.following import JournalFollower
from pytest_tfgrpo.report.live_view.page import live_page
from pytest_tfgrpo.report.page import choice
from pytest_tfgrpo.report.page.html import write_page
from pytest_tfgrpo.report.page.payload.details import DetailsFile
from pytest_tfgrpo.runs.journal.journal import ended_at, is_open

FIRST_S, SLICE_S = 0.05, 0.25
"""How long the first request, and one after it, reads the journal before it answers with what it has."""
DETAIL = re.compile(r"details/(?P<key>[0-9a-f]{32})/(?P<kind>rows|groups)/(?P<row>[0-9]{1,9})")
"""What a page requests of the file beside it: the part of a kind that has a row."""
PATIENCE_S = 15.0
"""How long a run that has ended may take to write its report, before the page is made from the journal."""


def view(arguments: Arguments) -> Iterator[str]:
    """Open the page of a run in the browser; it follows a run that goes on.

    Nothing is written. A page that is served instead of opened is there until Ctrl-C.
    """
    project = project_of(arguments)
    folder = find_run(project, arguments.run)
    page = folder / REPORT_HTML
    going_on = is_open(folder / JOURNAL)
    fresh = not going_on and is_fresh(folder)
    if fresh and arguments.port is None and not (folder / DETAILS).exists():
        yield f"page   {line(os.path.relpath(page))}"
        if not arguments.no_browser and not _opened(page.resolve().as_uri()):
            yield f"no browser could be opened; the address of the page is {page.resolve().as_uri()}"
        return
    site = RunSite(project, folder)
    if not going_on:
        site.page()  # what is wrong with the journal is said here, and not to a browser
    with PageServer(site, arguments.port or 0) as server:
        thread = serve(server)
        state = (
            "goes on"
            if going_on
            else "has more scenarios than its page holds; this serves all of them"
            if fresh and (folder / DETAILS).exists()
            else "has ended"
            if fresh
            else f"has no {REPORT_HTML} of its end, so its page is made of its journal"
        )
        yield f"run {line(folder.name)} {state}"
        yield f"page   {server.address}"
        if not arguments.no_browser and not _opened(server.invitation):
            yield "no browser could be opened; the address above is that of the page"
        yield "Ctrl-C ends the view; the run goes on" if going_on else "Ctrl-C ends the view"
        try:
            thread.join()
        finally:
            server.shutdown()


def _opened(address: str) -> bool:
    """Return whether a browser was started with an address."""
    import webbrowser

    try:
        return webbrowser.open(address)
    except (OSError, webbrowser.Error):
        return False


def is_fresh(folder: Path) -> bool:
    """Return whether the page in a run's folder is that of its end, with all that belongs to it."""
    try:
        report = read_report(folder)
        if report is None or not ended_at(folder / JOURNAL, report["finished_at"]):
            return False
        made_from = [path for path in (folder / REPORT_JSON, folder / LABELS) if path.exists()]
        made_from += [folder / DETAILS] if len(report["scenarios"]) > choice.ROWS else []
        written = (folder / REPORT_HTML).stat().st_mtime_ns
        return all(path.stat().st_mtime_ns <= written for path in made_from)
    except (JournalError, KeyError, OSError):
        return False


class RunSite:
    """What the view answers: the live page while a run goes on, and once it has ended its report."""

    def __init__(self, project: Project, folder: Path) -> None:
        """Follow the run in `folder`."""
        self._project, self._folder = project, folder
        self._journal = JournalFollower(folder / JOURNAL)
        self._lock = threading.Lock()
        self._page: tuple[int, bytes] | None = None
        self._details: DetailsFile | None = None
        self._closed_at: float | None = None

    def __call__(self, name: str) -> WebAnswer | None:
        """Answer a request: the page, or what its script requests; None for other names."""
        with self._lock:
            match name:
                case "":
                    return self._shown()
                case "state":
                    return WebAnswer("application/json", _json(self._state()))
                case "names":
                    run = self._journal.run
                    return WebAnswer("application/json", _json([] if run is None else run.names()))
        if (wanted := DETAIL.fullmatch(name)) is not None:
            return self._detail(wanted["key"], wanted["kind"], int(wanted["row"]))
        return None

    def _detail(self, key: str, kind: str, row: int) -> WebAnswer | None:
        """Return what the page requests of the file beside it; None if that is another or has nothing."""
        details = self._details
        if details is None or key != details.key:
            return None
        piece = details.piece(kind, row)
        return None if piece is None else WebAnswer("application/gzip", piece)

    def _shown(self) -> WebAnswer:
        try:
            return WebAnswer("text/html", self.page() if self._is_over() else self._live())
        except (OSError, TfgrpoError) as error:
            return WebAnswer(
                "text/plain", f"tfgrpo: {block(str(error))}\n".encode("utf-8", "backslashreplace")
            )

    def page(self) -> bytes:
        """Return the full page, as it is in the run's folder or made from the journal.

        Raises JournalError, and OSError where it cannot be read or there is no room to make it.
        """
        if is_fresh(self._folder):
            return self._taken(self._folder)
        changed = (self._folder / JOURNAL).stat().st_mtime_ns
        if self._page is None or self._page[0] != changed:
            shown = rendered(self._project, self._folder)
            with tempfile.TemporaryDirectory(prefix="tfgrpo-view-") as place:
                write_page(Path(place), shown.report, shown.run)
                self._page = changed, self._taken(Path(place))
        return self._page[1]

    def _taken(self, folder: Path) -> bytes:
        """Return the page in a folder, and keep the file beside it open; raises JournalError and OSError."""
        page, details = (folder / REPORT_HTML).read_bytes(), folder / DETAILS
        self._details = DetailsFile(details) if details.exists() else None
        return page

    def _is_over(self) -> bool:
        """Return whether nobody writes the journal, and its report is written or will not be."""
        if is_open(self._folder / JOURNAL):
            self._closed_at = None
            return False
        now = time.monotonic()
        self._closed_at = self._closed_at or now
        run = self._journal.run
        ended = run is not None and run.finish is not None
        return not ended or is_fresh(self._folder) or now - self._closed_at > PATIENCE_S

    def _live(self) -> bytes:
        return live_page(self._project.task_id, self._folder.name).encode("utf-8", "backslashreplace")

    def _state(self) -> dict[str, object]:
        problem, behind = "", False
        try:
            behind = self._journal.read(SLICE_S if self._journal.events else FIRST_S)
        except JournalError as error:
            problem = str(error)
        over = not problem and not behind and self._is_over()
        return {**self._journal.state(time.time()), "behind": behind, "problem": problem, "over": over}


def _json(value: object) -> bytes:
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
