"""Pictures among a scenario's attachments: known by their first bytes, shown to the model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pytest_tfgrpo.core.errors import ActorError, ProviderError
from pytest_tfgrpo.core.scenarios import Attachment, Task
from pytest_tfgrpo.llm.protocol import Image

HEAD_BYTES = 12
"""Bytes that identify a picture."""
PICTURES_MAX_BYTES = 20_000_000
"""Of all pictures of one scenario: as JSON they have a third more, and common providers take no more."""


def media_type(head: bytes) -> str | None:
    """Return the media type of the picture that starts with `head`; None when it is no picture we show."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:HEAD_BYTES] == b"WEBP":
        return "image/webp"
    return None


def read_pictures(attachments: Sequence[Attachment]) -> tuple[tuple[Image, ...], bool]:
    """Return the pictures among the files of a scenario, and whether there are other files.

    Raises ProviderError when the files cannot be read, or the pictures are too large.
    """
    pictures: list[Image] = []
    for attachment in attachments:
        try:
            with attachment.path.open("rb") as file:
                head = file.read(HEAD_BYTES)
                if (kind := media_type(head)) is not None:
                    pictures.append(Image(media_type=kind, data=head + file.read()))
        except OSError as error:
            text = f"the attachment {attachment.name!r} cannot be read: {error.strerror}"
            raise ProviderError(text, "attachment") from error
    size = sum(len(picture.data) for picture in pictures)
    if size > PICTURES_MAX_BYTES:
        raise ProviderError(_too_large(size), "attachment")
    return tuple(pictures), len(pictures) < len(attachments)


def require_sendable(task: Task, attachments: Sequence[Attachment]) -> None:
    """Raise ActorError naming the scenario when its pictures are too large to be sent."""
    size = sum(file.path.stat().st_size for file in attachments if _is_picture(file.path))
    if size > PICTURES_MAX_BYTES:
        raise ActorError(f"scenario {task.id!r}: {_too_large(size)}")


def _is_picture(path: Path) -> bool:
    with path.open("rb") as file:
        return media_type(file.read(HEAD_BYTES)) is not None


def _too_large(size: int) -> str:
    return f"the pictures have {size} bytes together, more than {PICTURES_MAX_BYTES}; attach smaller ones"
