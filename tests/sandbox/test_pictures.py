"""Pictures that an answer names: real ones of the workspace are kept, and of others the reason why not."""

import base64
import os
import struct
from pathlib import Path

import pytest

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
