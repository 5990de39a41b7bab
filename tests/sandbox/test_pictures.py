"""Pictures that an answer names: real ones of the workspace are kept, and of others the reason why not."""

import base64
import os
import struct
from pathlib import Path

import pytest

from pytest_tfgrpo.sandbox import pictures
from pytest_tfgrpo.sandbox.pictures import MAX_BYTES, MOST, measured, names_pictures, pictures_named

PNG = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", 3, 2) + b"..."
GIF = b"GIF89a" + struct.pack("<HH", 3, 2)
JPEG = b"\xff\xd8\xff\xe0\x00\x04..\xff\xc0\x00\x11\x08" + struct.pack(">HH", 2, 3) + b"..."
WEBP = b"RIFF....WEBP"
EXTENDED = WEBP + b"VP8X........\x02\x00\x00\x01\x00\x00"
LOSSLESS = WEBP + b"VP8L....\x2f" + struct.pack("<I", 2 | 1 << 14)
LOSSY = WEBP + b"VP8 " + b"." * 10 + struct.pack("<HH", 3, 2)


@pytest.mark.parametrize(
    ("data", "type_"),
    [
        (PNG, "image/png"),
        (GIF, "image/gif"),
        (JPEG, "image/jpeg"),
        (EXTENDED, "image/webp"),
        (LOSSLESS, "image/webp"),
        (LOSSY, "image/webp"),
    ],
)
def test_a_picture_is_known_by_its_content(data: bytes, type_: str) -> None:
    assert measured(data) == (type_, 3, 2)


@pytest.mark.parametrize(
    "data", [b"", b"<svg>", b"%PDF", PNG[:20], JPEG[:6], JPEG[:8] + b"..", WEBP + b"ALPH"]
)
def test_what_is_none_or_is_torn_is_not_kept(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.png").write_bytes(data)
    (found,) = pictures_named("see a.png", tmp_path)
    assert (found.data, found.why) == ("", "not kept: it is no PNG, JPEG, GIF or WebP picture")


def test_pictures_are_found_however_an_answer_names_them(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("out/a.png", "b.GIF", "c-1.jpeg"):
        (tmp_path / name).write_bytes(PNG)
    answer = (
        f'![A](./out/a.png) {{"file": "b.GIF"}} {tmp_path}/c-1.jpeg. Again out/a.png; d.png is not there.'
    )
    found = pictures_named(answer, tmp_path)
    assert [one.name for one in found] == ["out/a.png", "b.GIF", "c-1.jpeg"]
    assert {(one.type, one.data, one.why) for one in found} == {
        ("image/png", base64.b64encode(PNG).decode(), "")
    }


def test_nothing_outside_of_the_workspace_is_read(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(PNG)
    inside = tmp_path / "work"
    inside.mkdir()
    (inside / "link.png").symlink_to("../secret.png")
    (inside / "folder").symlink_to("..")
    os.mkfifo(inside / "pipe.png")
    answer = f"../secret.png link.png folder/secret.png pipe.png {tmp_path}/secret.png"
    found = pictures_named(answer, inside)
    assert len(found) == 5
    assert not any(one.data for one in found)
    assert all(one.why.startswith("not kept: ") for one in found)


def test_what_is_large_or_too_much_is_named_alone(tmp_path: Path) -> None:
    (tmp_path / "big.png").write_bytes(PNG + bytes(MAX_BYTES))
    (tmp_path / "bomb.png").write_bytes(
        PNG.replace(struct.pack(">II", 3, 2), struct.pack(">II", 60_000, 60_000))
    )
    for n in range(MOST + 1):
        (tmp_path / f"{n}.png").write_bytes(PNG)
    answer = "big.png bomb.png " + " ".join(f"{n}.png" for n in range(MOST + 1))
    big, bomb, *some, last = pictures_named(answer, tmp_path)
    assert f"more than {MAX_BYTES}" in big.why
    assert bomb.why == "not kept: 60000 x 60000 pixels are more than 25,000,000"
    assert all(one.data for one in some)
    assert (last.data, last.why) == ("", f"not kept: the answer names more than {MOST} pictures")


def test_an_answer_of_many_names_costs_little(tmp_path: Path) -> None:
    answer = "/".join(["a.png"] * 40_000) + "." * 100_000 + ".png"
    assert names_pictures(answer)
    assert pictures_named(answer, tmp_path) == ()
    assert not names_pictures("a.pngs, png")


def test_a_picture_as_large_as_it_may_be_is_kept(tmp_path: Path) -> None:
    (tmp_path / "full.png").write_bytes(PNG.ljust(MAX_BYTES, b"."))
    assert MAX_BYTES == 128_000
    for name, sides in (("most.png", (5_000, 5_000)), ("more.png", (5_000, 5_001))):
        (tmp_path / name).write_bytes(PNG.replace(struct.pack(">II", 3, 2), struct.pack(">II", *sides)))
    full, most, more = pictures_named("full.png most.png more.png", tmp_path)
    assert full.data
    assert most.data
    assert more.why == "not kept: 5000 x 5001 pixels are more than 25,000,000"


def test_20_names_are_looked_up_and_not_those_far_down_an_answer(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    names = [f"{n}.png" for n in range(19)]
    for name in names[:18]:
        (tmp_path / name).mkdir()
    kept = pictures_named(" ".join([*names[:18], "x.png", "a.png"]), tmp_path)
    assert [one.name for one in kept] == [*names[:18], "a.png"]
    assert [one.name for one in pictures_named(" ".join([*names, "x.png", "a.png"]), tmp_path)] == names[:18]
    far = " " * 199_995
    assert [one.name for one in pictures_named(f"{far}a.png", tmp_path)] == ["a.png"]
    assert pictures_named(f"{far} a.png", tmp_path) == ()
    assert names_pictures(f"{far}a.png")
    assert not names_pictures(f"{far} a.png")


def test_a_name_has_200_characters_at_most(tmp_path: Path) -> None:
    (tmp_path / ("n" * 150 + ".png")).write_bytes(PNG)
    (found,) = pictures_named("n" * 150 + ".png", tmp_path)
    assert found.data
    assert pictures_named("/" * 300 + ".png", tmp_path)[0].name == "/" * 200 + ".png"


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (b"GIF87a" + struct.pack("<HH", 300, 2), (300, 2)),
        (JPEG[:4] + b"\x00\x04..\xff\xc4\x00\x09.\x00\x07\x00\x07.." + JPEG[8:], (3, 2)),
        (JPEG.replace(b"\xff\xc0", b"\xff\xcf"), (3, 2)),
        (WEBP + b"VP8 " + b"." * 10 + struct.pack("<HH", 3 | 0x4000, 2 | 0x8000), (3, 2)),
        (WEBP + b"VP8X........" + (70_000).to_bytes(3, "little") + b"\x01\x00\x01", (70_001, 65_538)),
        (WEBP + b"VP8L....\x2f" + struct.pack("<I", 299 | 0x2FFF << 14), (300, 0x3000)),
    ],
    ids=["gif of 87", "jpeg with a table before", "jpeg of another kind", "scaled", "wide", "lossless"],
)
def test_the_size_of_a_picture_is_read_where_its_format_has_it(data: bytes, size: tuple[int, int]) -> None:
    assert measured(data)[1:] == size


def test_an_end_without_a_name_names_no_picture_and_the_next_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"none")
    assert [one.name for one in pictures_named("as .png, or \n.png: a.png", tmp_path)] == ["a.png"]


def test_what_follows_the_size_of_a_picture_is_no_part_of_it() -> None:
    head = b"RIFF" + bytes(4) + b"WEBP"
    sizes = {
        b"VP8X": bytes(8) + (8).to_bytes(3, "little") + (5).to_bytes(3, "little"),
        b"VP8L": bytes(4) + b"\x2f" + (8 | 5 << 14).to_bytes(4, "little"),
        b"VP8 ": bytes(10) + struct.pack("<HH", 9, 6),
    }
    for kind, body in sizes.items():
        assert pictures._size_of_webp(head + kind + body + b"\xff" * 8) == (9, 6)
