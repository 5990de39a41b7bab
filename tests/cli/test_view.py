"""The command ``tfgrpo view``: pages on loopback, for who knows the token alone."""

import fcntl
import gzip
import http.client
import json
import re
import socket
import threading
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import frozen as frozen_projects
from support.frozen import Frozen
from support.project import Project
from support.tools import tfgrpo

from pytest_tfgrpo.cli import view_server
from pytest_tfgrpo.cli.parsers import Arguments
from pytest_tfgrpo.cli.project import project_of
from pytest_tfgrpo.cli.runs import view
from pytest_tfgrpo.cli.runs.view import RunSite
from pytest_tfgrpo.cli.view_server import AT_ONCE, HOST, PageServer, WebAnswer, serve
from pytest_tfgrpo.report.page import choice


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    """A server of two names: the page, and ``state``."""
    names = {"": WebAnswer("text/html", b"<p>page"), "state": WebAnswer("application/json", b"{}")}
    with PageServer(names.get) as server:
        serve(server)
        yield server
        server.shutdown()


def ask(
    server: PageServer, path: str, *, host: str | None = None, method: str = "GET"
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(HOST, server.server_address[1], timeout=100)
    connection.request(method, path, headers={} if host is None else {"Host": host})
    return connection.getresponse()


def test_who_knows_the_token_gets_the_page(server: PageServer) -> None:
    answer = ask(server, f"/{server.token}/")
    assert (answer.status, answer.read()) == (200, b"<p>page")
    assert len(server.token) >= 43  # 256 bits
    said = {name.lower(): value for name, value in answer.getheaders()}
    assert said["cache-control"] == "no-store"
    assert said["referrer-policy"] == "no-referrer"
    assert said["cross-origin-resource-policy"] == said["cross-origin-opener-policy"] == "same-origin"
    assert said["content-security-policy"] == "frame-ancestors 'none'"
    assert said["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in said
    assert "python" not in str(said).lower()
    assert ask(server, f"/{server.token}/state").read() == b"{}"
    assert ask(server, f"/{server.token}/", host="localhost:1").status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//",
        "/state",
        "/wrong/",
        "/{almost}/",
        "/{token}",
        "/{token}/other",
        "/x/{token}/",
        "/%2e%2e/",
        "/é/",
    ],
)
def test_nobody_else_gets_an_answer(server: PageServer, path: str) -> None:
    asked = path.format(token=server.token, almost=server.token[:-1]).encode().decode("latin-1")
    with socket.create_connection((HOST, server.server_address[1]), timeout=100) as client:
        client.sendall(f"GET {asked} HTTP/1.0\r\nHost: {HOST}\r\n\r\n".encode("latin-1"))
        answer = b"".join(iter(lambda: client.recv(4096), b""))
    assert b"page" not in answer
    assert server.token.encode() not in answer
    assert answer.split()[1] in (b"404", b"400")


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "evil.example:80", ""])
def test_a_foreign_name_that_leads_here_gets_nothing(server: PageServer, host: str) -> None:
    assert ask(server, f"/{server.token}/", host=host).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods_are_not_understood(server: PageServer, method: str) -> None:
    answer = ask(server, f"/{server.token}/", method=method)
    assert (answer.status, answer.getheader("Content-Type")) == (501, "text/plain; charset=utf-8")


def test_an_invitation_leads_to_the_page_once() -> None:
    with PageServer(lambda name: WebAnswer("text/html", b"page")) as server:
        serve(server)
        path = server.invitation.partition(str(server.server_address[1]))[2]
        assert ask(server, f"{path}state").status == 404, "it leads to the page alone, and is still good"
        first, second = ask(server, path), ask(server, path)
        assert (first.status, first.getheader("Location")) == (303, f"/{server.token}/")
        assert (second.status, second.getheader("Location")) == (404, None)
        server.shutdown()


def test_a_client_that_asks_drop_by_drop_is_turned_away_in_time(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_server, "PATIENCE_S", 0.2)
    with socket.create_connection((HOST, server.server_address[1])) as client:
        client.settimeout(0.02)  # a drop at least every 0.02 s, which no limit between drops would ever end
        for _ in range(500):
            try:
                client.sendall(b"a")
                if client.recv(1) == b"":
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
    raise AssertionError("it may ask for ever")


def test_connections_that_ask_nothing_keep_nobody_out(
    server: PageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view_server, "PATIENCE_S", 1000.0)  # longer than the clients here wait
    monkeypatch.setattr(view_server, "GIVES_WAY_S", 100.0)
    silent = [
        socket.create_connection((HOST, server.server_address[1]), timeout=100) for _ in range(3 * AT_ONCE)
    ]
    assert ask(server, f"/{server.token}/").status == 200
    assert silent[0].recv(1) == b""  # it was there for longest
    for client in silent:
        client.close()


def test_a_text_of_any_letters_arrives_whole() -> None:
    text = "ü€".encode() * 500
    with PageServer(lambda name: WebAnswer("text/plain", text)) as server:
        serve(server)
        assert ask(server, f"/{server.token}/").read() == text
        server.shutdown()


def test_sixteen_are_answered_at_a_time() -> None:
    with PageServer(lambda name: None) as server:
        assert [server._free.acquire(blocking=False) for _ in range(17)] == [True] * 16 + [False]


def test_a_request_that_no_thread_can_answer_gives_its_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: object, request: object, address: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(view_server.socketserver.ThreadingTCPServer, "process_request", full)
    with PageServer(lambda name: None) as server:
        for _ in range(2 * AT_ONCE):
            with pytest.raises(RuntimeError, match="new thread"):
                server.process_request(object(), None)
        assert server._silent == {}


@pytest.mark.parametrize(
    ("error", "told"), [(ConnectionResetError(), False), (TimeoutError(), False), (ValueError("a bug"), True)]
)
def test_of_a_client_that_left_nothing_is_said(
    error: Exception, told: bool, server: PageServer, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        raise error
    except Exception:
        server.handle_error(None, ("here", 1))
    said = capsys.readouterr().err
    assert ("a bug" in said, bool(said)) == (told, told)


def test_no_time_is_left_for_a_request_once_it_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [10.0]
    monkeypatch.setattr(view_server.time, "monotonic", lambda: clock[0])
    one, other = socket.socketpair()
    with one, other:
        request = view_server._Request(one)
        other.sendall(b"ab")
        clock[0] += view_server.PATIENCE_S - 1
        assert request.read(1) == b"a"
        assert one.gettimeout() == 1
        clock[0] += 1
        with pytest.raises(TimeoutError, match="the client takes too long to ask"):
            request.read(1)
        request.close()


def test_many_requests_at_once_are_bounded_and_do_no_harm() -> None:
    waiting = threading.Semaphore(0)
    go_on = threading.Event()

    def slow(name: str) -> WebAnswer:
        waiting.release()
        go_on.wait(100)
        return WebAnswer("text/plain", b"done")

    with PageServer(slow) as server:
        serve(server)
        clients = [
            socket.create_connection((HOST, server.server_address[1]), timeout=100) for _ in range(AT_ONCE)
        ]
        for client in clients:
            client.sendall(f"GET /{server.token}/ HTTP/1.0\r\nHost: {HOST}\r\n\r\n".encode())
        for _ in clients:
            assert waiting.acquire(timeout=100)
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            ask(server, f"/{server.token}/")
        go_on.set()
        assert all(b"".join(iter(lambda c=client: c.recv(4096), b"")).endswith(b"done") for client in clients)  # type: ignore[misc]
        for client in clients:
            client.close()
        assert ask(server, f"/{server.token}/").status == 200
        server.shutdown()


# the command


@pytest.fixture
def learned(frozen: Frozen) -> Project:
    return frozen(frozen_projects.learned)


def files_of(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def site_of(project: Project) -> RunSite:
    return RunSite(project_of(Arguments(out=None, task_id=None)), project.runs()[-1])


def test_the_page_of_a_run_that_has_ended_is_opened(
    learned: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = learned.runs()[0]
    before, opened = files_of(folder), list[str]()
    monkeypatch.setattr(webbrowser, "open", lambda address: not opened.append(address))
    line = f"page   out/demo/runs/{folder.name}/report.html\n"
    assert tfgrpo("view") == tfgrpo("view", folder.name[:-1]) == line
    assert opened == 2 * [(folder / "report.html").as_uri()]
    assert tfgrpo("view", "--no-browser") == line
    assert len(opened) == 2
    assert files_of(folder) == before


def test_where_no_browser_can_be_opened_the_address_is_printed(
    learned: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(address: str) -> bool:
        raise webbrowser.Error("no browser")

    address = (learned.runs()[0] / "report.html").as_uri()
    for opening in (broken, lambda address: False):
        monkeypatch.setattr(webbrowser, "open", opening)
        assert tfgrpo("view").endswith(f"no browser could be opened; the address of the page is {address}\n")


def test_a_run_that_does_not_exist_and_a_bad_port_are_plain_messages(learned: Project) -> None:
    assert "no run 'nope' of task 'demo'" in tfgrpo("view", "nope", code=1)
    for port in ("65536", "-1", "x"):
        assert "--port" in tfgrpo("view", "--port", port, code=2)


def test_a_port_in_use_is_a_plain_message(learned: Project) -> None:
    (learned.runs()[0] / "report.html").unlink()
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        said = tfgrpo("view", "--port", str(port), code=1)
    assert said == (
        f"tfgrpo: port {port} of 127.0.0.1 is in use; name another with --port, or none to get a free one\n"
    )


def test_a_page_that_is_missing_or_stale_is_served_and_nothing_is_written(learned: Project) -> None:
    folder = learned.runs()[0]
    page = (folder / "report.html").read_bytes()
    (folder / "report.html").unlink()
    before = files_of(folder)
    site = site_of(learned)
    assert site("") == WebAnswer("text/html", page)
    assert site("other") is None
    assert files_of(folder) == before


@pytest.fixture
def large(learned: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """The same run as if a page had no room for more than five scenarios."""
    monkeypatch.setattr(choice, "ROWS", 5)
    tfgrpo("report")
    return learned


def key_in(page: bytes) -> str:
    found = re.search(rb'"beyond":\{"key":"([0-9a-f]{32})"', page)
    assert found is not None
    return found[1].decode()


def serve_at_once(server: PageServer) -> threading.Thread:
    """Serve, and end at once, as Ctrl-C does."""
    thread = serve(server)
    server.shutdown()
    return thread


def test_a_finished_page_is_served_where_a_port_is_named(
    learned: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "serve", serve_at_once)
    folder = learned.runs()[0]
    before = files_of(folder)
    with socket.create_server((HOST, 0)) as other:
        port = str(other.getsockname()[1])
    lines = tfgrpo("view", "--no-browser", "--port", port).splitlines()
    assert lines[0] == f"run {folder.name} has ended"
    assert lines[1].startswith(f"page   http://{HOST}:{port}/")
    assert lines[2] == "Ctrl-C ends the view"
    assert files_of(folder) == before


def test_a_run_that_needs_a_file_beside_its_page_is_served_with_it(
    large: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = large.runs()[0]
    before = files_of(folder)
    monkeypatch.setattr(view, "serve", serve_at_once)
    lines = tfgrpo("view", "--no-browser").splitlines()
    assert lines[0] == f"run {folder.name} has more scenarios than its page holds; this serves all of them"
    assert lines[1].startswith(f"page   http://{HOST}:")
    assert lines[2] == "Ctrl-C ends the view"
    assert files_of(folder) == before
    assert {"report.html", "report-details.jsonl.gz"} < before.keys()


def test_the_view_answers_for_the_scenarios_that_the_page_does_not_hold(large: Project) -> None:
    site = site_of(large)
    assert site("details/0/rows/0") is None  # nobody has the page yet
    page = site("")
    assert page is not None
    key = key_in(page.body)
    rows, groups = (site(f"details/{key}/{kind}/15") for kind in ("rows", "groups"))
    assert rows is not None
    assert groups is not None
    assert rows.kind == groups.kind == "application/gzip"
    value = json.loads(gzip.decompress(rows.body))
    assert len(value["rows"]) == 16
    own = [g for place, g in json.loads(gzip.decompress(groups.body))["groups"].items() if "15." in place]
    assert {group["scenario"] for group in own} == {value["rows"][15][0]}


NO_DETAILS = (
    "details/{other}/rows/0",
    "details/{key}/rows/-1",
    "details/{key}/rows/",
    "details/{key}/rows/0/0x",
    "details/{key}/rows/1e3",
    "details/{key}/rows/٣",
    "details/{key}/rows/9999999999",
    "details/{key}/words/0",
    "details/{key}/../journal.jsonl",
    "details/{key}",
    "details/",
    "report-details.jsonl.gz",
    "../report-details.jsonl.gz",
)


def test_the_view_answers_for_nothing_else(large: Project) -> None:
    site = site_of(large)
    page = site("")
    assert page is not None
    key = key_in(page.body)
    names = [name.format(key=key, other=key[::-1]) for name in NO_DETAILS]
    assert [name for name in names if site(name) is not None] == []


def test_without_page_or_details_both_are_made_of_the_journal_and_nothing_is_written(large: Project) -> None:
    folder = large.runs()[0]
    page = (folder / "report.html").read_bytes()
    for name in ("report-details.jsonl.gz", "report.html"):
        (folder / name).unlink()
        before = files_of(folder)
        site = site_of(large)
        assert site("") == WebAnswer("text/html", page)
        assert site(f"details/{key_in(page)}/groups/15") is not None
        assert files_of(folder) == before


def test_damaged_details_are_a_plain_message(large: Project) -> None:
    folder = large.runs()[0]
    path = folder / "report-details.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-9])
    (folder / "report.html").touch()
    said = tfgrpo("view", "--no-browser", code=1)
    assert f"is damaged or not a file of details; write it again with tfgrpo report {folder.name}" in said
    tfgrpo("report")
    assert site_of(large)("") is not None


def test_a_killed_run_is_served_as_far_as_it_got(learned: Project) -> None:
    folder = learned.runs()[0]
    rows = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join(rows[:-9]))
    answer = site_of(learned)("")
    assert answer is not None
    assert f"pytest --tfgrpo --tfgrpo-resume={folder.name}" in answer.body.decode()


def test_a_damaged_journal_is_a_plain_message(learned: Project) -> None:
    folder = learned.runs()[0]
    rows = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(b"".join([*rows[:3], b"x\n", *rows[4:]]))
    (folder / "report.html").unlink()
    assert "journal.jsonl:4: this line of the journal cannot be relied on" in tfgrpo("view", code=1)
    answer = site_of(learned)("")
    assert answer is not None
    assert answer.kind == "text/plain"
    assert b"journal.jsonl:4: this line" in answer.body


def test_a_run_that_goes_on_is_followed_until_its_report_is_there(learned: Project) -> None:
    folder = learned.runs()[0]
    whole = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    report = {name: (folder / name).read_bytes() for name in ("report.json", "report.html")}
    for name in report:
        (folder / name).unlink()
    (folder / "journal.jsonl").write_bytes(b"".join(whole[:9]))
    site = site_of(learned)

    def state() -> dict[str, object]:
        answer = site("state")
        assert answer is not None
        value: dict[str, object] = json.loads(answer.body)
        return value

    def follows(events: int) -> bool:
        """Ask until as many are read: on a busy machine one answer does not wait for all of them."""
        return any(state()["events"] == events for _ in range(200)) and state()["over"] is False

    with (folder / "journal.jsonl").open("ab", buffering=0) as journal:
        fcntl.flock(journal, fcntl.LOCK_EX)
        live = site("")
        assert live is not None
        assert b'id="phases"' in live.body
        assert follows(9)
        journal.write(b"".join(whole[9:]))
        assert follows(len(whole))
    assert state()["over"] is False  # the report is being written
    for name, content in report.items():
        (folder / name).write_bytes(content)
    assert state()["over"] is True
    assert site("") == WebAnswer("text/html", report["report.html"])
