"""Attachments: pictures go along, other files are reached by tools that stay in the workspace."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.model_actor import Bench, script, wants

from pytest_tfgrpo.actors.openai import files, pictures
from pytest_tfgrpo.actors.openai.files import LISTED, READ_CHARS, list_files, read_file
from pytest_tfgrpo.core.errors import ActorError
from pytest_tfgrpo.core.scenarios import Attachment, Task
from pytest_tfgrpo.sandbox.paths import write_untrusted

PNG = b"\x89PNG\r\n\x1a\n" + b"pixels"
JPEG = b"\xff\xd8\xff\xe0pixels"
GIF, OLD_GIF = b"GIF89apixels", b"GIF87apixels"
WEBP = b"RIFF\x10\0\0\0WEBPVP8 "
FILE_TOOLS = ["list_files", "read_file", "write_file"]


def test_pictures_go_along_with_the_task_in_their_order(bench: Bench) -> None:
    sound = b"RIFF\x10\0\0\0WAVEfmt "
    workspace = bench.workspace(a_png=PNG, b_jpg=JPEG, c_gif=GIF, d_webp=WEBP, e_gif=OLD_GIF, f_wav=sound)
    bench.ask(script("3"), workspace=workspace)
    request = bench.model.requests[0]
    assert [(i.media_type, i.data) for i in request.messages[-1].images] == [
        ("image/png", PNG),
        ("image/jpeg", JPEG),
        ("image/gif", GIF),
        ("image/webp", WEBP),
        ("image/gif", OLD_GIF),
    ]
    assert [spec.name for spec in request.tools] == FILE_TOOLS, "for the sound"
    assert not (bench.root / "work").exists()


def test_a_picture_is_known_by_its_content_and_not_by_its_name(bench: Bench) -> None:
    workspace = bench.workspace(a_png=b"no picture", b_txt=PNG)
    bench.ask(script("3"), workspace=workspace)
    request = bench.model.requests[0]
    assert [i.data for i in request.messages[-1].images] == [PNG]
    assert [spec.name for spec in request.tools] == FILE_TOOLS


def test_tools_for_files_are_offered_for_files_only(bench: Bench) -> None:
    bench.tools("def one(): ...")
    workspace = bench.workspace(a_txt=b"x")
    bench.ask(script("3"), workspace=workspace)
    assert [spec.name for spec in bench.model.requests[0].tools] == ["one", *FILE_TOOLS]
    bench.ask(script("3"), workspace=workspace, tools=("one",))
    assert [spec.name for spec in bench.model.requests[0].tools] == ["one"]


def test_a_tool_of_ones_own_replaces_one_for_files(bench: Bench) -> None:
    bench.tools("def read_file(path: str) -> str:\n    return 'mine'")
    workspace = bench.workspace(a_txt=b"x")
    bench.ask(script(wants(("read_file", '{"path": "a"}')), "3"), workspace=workspace)
    assert bench.told() == ["mine"]


def test_too_large_pictures_are_refused_before_anything_is_paid(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "PICTURES_MAX_BYTES", 20)
    bench.workspace(a_png=PNG, b_png=PNG, c_txt=b"x" * 100)
    attached = [
        Attachment(name=name, path=bench.root / "attached" / name, sha256="")
        for name in ("a.png", "c.txt", "b.png")
    ]
    task = Task(id="look-1", domain="d", prompt="p")
    bench.actor().require([(task, attached[:2])])
    with pytest.raises(
        ActorError, match="scenario 'look-1': the pictures have 28 bytes together, more than 20"
    ):
        bench.actor().require([(task, attached)])
    outcome = bench.ask(script("3"), workspace=bench.workspace(a_png=PNG, b_png=PNG))
    assert (outcome.status, bench.model.requests) == ("error", [])


def test_an_attachment_that_went_away_is_not_the_agents_fault(bench: Bench) -> None:
    workspace = bench.workspace(a_png=PNG)
    (bench.root / "attached" / "a.png").unlink()
    outcome = bench.ask(script("3"), workspace=workspace)
    assert outcome.failure is not None
    assert (outcome.status, outcome.failure.code) == ("error", "attachment")
    assert "'a.png' cannot be read: No such file" in outcome.failure.message


def use(bench: Bench, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    turns = [wants((name, json.dumps(arguments))) for name, arguments in calls]
    bench.ask(
        script(*turns, "3"),
        workspace=bench.workspace(a_txt=b"alpha"),
        tools=tuple(FILE_TOOLS),
        settings={"max_steps": 99},
        answer_max_bytes=10**7,
    )
    return bench.told()


def test_files_are_listed_read_and_written(bench: Bench) -> None:
    assert use(
        bench,
        ("read_file", {"name": "a.txt"}),
        ("write_file", {"name": "out/b.txt", "content": "bêta"}),
        ("write_file", {"name": "./a.txt", "content": "anew"}),
        ("list_files", {}),
        ("read_file", {"name": "out/b.txt", "offset": 1}),
        ("read_file", {"name": "a.txt"}),
    ) == ["alpha", "5 bytes written", "4 bytes written", '["a.txt", "out/b.txt"]', "êta", "anew"]
    assert sorted(path.name for path in (bench.root / "work").rglob("*")) == ["a.txt", "b.txt", "out"]


def test_of_many_files_500_are_listed(bench: Bench) -> None:
    folder = bench.root / "made"
    folder.mkdir()
    for n in range(LISTED):
        (folder / f"{n:03}").touch()
    whole = list_files(SimpleNamespace(workspace=folder))  # type: ignore[arg-type]
    assert (len(whole), whole[-1]) == (LISTED, "499")
    (folder / "more").touch()
    cut = list_files(SimpleNamespace(workspace=folder))  # type: ignore[arg-type]
    assert (len(cut), cut[-1]) == (LISTED + 1, "and more")


def test_what_is_written_is_limited_by_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "WRITE_MAX_BYTES", 5)
    context: Any = SimpleNamespace(workspace=tmp_path)
    assert files.write_file(context, "a", "bêta") == "5 bytes written"
    with pytest.raises(ValueError, match="the content has 6 bytes, more than 5"):
        files.write_file(context, "a", "bêtâ")
    assert (tmp_path / "a").read_text() == "bêta"


def test_a_long_file_is_read_in_parts(bench: Bench) -> None:
    first, second = use(
        bench,
        ("write_file", {"name": "long.txt", "content": "a" * 20_000 + "b" * 5}),
        ("read_file", {"name": "long.txt"}),
        ("read_file", {"name": "long.txt", "offset": 20_000}),
    )[1:]
    assert first == "a" * 20_000 + "\n[5 characters more: read on with offset 20000]"
    assert second == "b" * 5


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "../secret", "x/../../secret", "", ".", "a\0b", "..\\secret"]
)
def test_names_that_leave_the_workspace_are_refused(bench: Bench, name: str) -> None:
    (bench.root / "secret").write_text("hidden")
    told = use(bench, ("read_file", {"name": name}), ("write_file", {"name": name, "content": "x"}))
    assert all("must be a plain relative path that stays in its folder" in text for text in told)
    assert (bench.root / "secret").read_text() == "hidden"


def test_a_file_that_is_not_there_is_no_end(bench: Bench) -> None:
    assert use(bench, ("read_file", {"name": "b.txt"})) == [
        "error: ValueError: there is no file 'b.txt'; list_files names those there are"
    ]


def test_binary_and_huge_files_are_refused(bench: Bench) -> None:
    bench.tools(
        """
        from pytest_tfgrpo import ToolContext
        def prepare(context: ToolContext) -> None:
            (context.workspace / "binary").write_bytes(bytes(9))
            with (context.workspace / "huge").open("wb") as file:
                file.truncate(10**12)
        """
    )
    calls = [("prepare", "{}"), ("read_file", '{"name": "binary"}'), ("read_file", '{"name": "huge"}')]
    calls.append(("write_file", json.dumps({"name": "a", "content": "x" * 1_000_001})))
    bench.ask(script(*map(wants, calls), "3"), tools=("prepare", *FILE_TOOLS), answer_max_bytes=10**7)
    binary, huge, written = bench.told()[1:]
    assert "'binary' is not a text file" in binary
    assert "has 1000000000000 bytes, more than" in huge
    assert "the content has 1000001 bytes, more than 1000000" in written


def hostile_folder(root: Path) -> Path:
    folder = root / "in"
    (folder / "dir").mkdir(parents=True)
    (root / "out").mkdir()
    (root / "out" / "secret").write_text("hidden")
    (folder / "link").symlink_to(root / "out" / "secret")
    (folder / "linked").symlink_to(root / "out")
    (folder / "file").write_text("x")
    os.mkfifo(folder / "pipe")
    os.link(root / "out" / "secret", folder / "twin")
    return folder


@pytest.mark.parametrize("name", ["link", "pipe", "twin", "file", "new", "deep/er/new", "dir/new"])
def test_writing_replaces_what_has_the_name_and_follows_no_link(tmp_path: Path, name: str) -> None:
    folder = hostile_folder(tmp_path)
    write_untrusted(folder, name, b"data")
    assert (folder / name).read_bytes() == b"data"
    assert not (folder / name).is_symlink()
    assert (tmp_path / "out" / "secret").read_text() == "hidden"


def test_a_file_too_many_folders_deep_is_refused_before_any_is_made(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="lies more than 32 folders deep"):
        write_untrusted(tmp_path, "a/" * 5000 + "b", b"data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["linked/secret", "linked/new", "dir", "file/new", "x" * 300])
def test_writing_through_a_link_or_over_a_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder = hostile_folder(tmp_path)
    open_before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(ValueError, match="cannot be written without following links"):
        write_untrusted(folder, name, b"data")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["secret"]
    assert (tmp_path / "out" / "secret").read_text() == "hidden"
    assert not list(folder.rglob(".*"))
    assert len(list(Path("/proc/self/fd").iterdir())) == open_before


@pytest.mark.parametrize("length", [0, 1, READ_CHARS - 1, READ_CHARS, READ_CHARS + 1, 2 * READ_CHARS])
@pytest.mark.parametrize("offset", [-1, 0, 1, READ_CHARS])
def test_a_long_file_is_read_in_pieces_that_say_how_much_is_left(
    tmp_path: Path, length: int, offset: int
) -> None:
    text = "é" * length
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    context: Any = SimpleNamespace(workspace=tmp_path)
    start = max(offset, 0)
    left = length - start - READ_CHARS
    more = f"\n[{left} characters more: read on with offset {start + READ_CHARS}]" if left > 0 else ""
    assert read_file(context, "a.txt", offset) == text[start : start + READ_CHARS] + more


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (PNG, "image/png"),
        (PNG[:7], None),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"\xff\xd8", None),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"GIF88a", None),
        (b"RIFF1234WEBP", "image/webp"),
        (b"RIFF1234WAVE", None),
        (b"XIFF1234WEBP", None),
        (b"RIFF1234WEB", None),
        (b"", None),
    ],
)
def test_the_kind_of_a_picture_is_told_by_its_first_bytes(head: bytes, kind: str | None) -> None:
    assert pictures.media_type(head) == kind
