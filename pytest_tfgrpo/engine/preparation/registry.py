"""Those who take part in few runs, by what a spec names: loaded where one does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_tfgrpo.core.wire.wire import Json

if TYPE_CHECKING:
    from pytest_tfgrpo.llm.models import Models
    from pytest_tfgrpo.llm.protocol import Completer
    from pytest_tfgrpo.protocols import Judge
    from pytest_tfgrpo.recording.replay import Replay


def open_models(file: Path | None, *, dry: bool, **shared: Any) -> Models:
    """Return the language models of a file, or those of the default endpoint; raises SettingError.

    A `dry` run calls nobody, so keys may be missing.
    """
    from pytest_tfgrpo.llm.models import Models
    from pytest_tfgrpo.suite.models_file import load_models

    return Models(replace(load_models(file), dry=dry), **shared)


def open_recording(argument: str, root: Path) -> Replay:
    """Return the recording that answers in place of an actor; raises ActorError and RecordingError."""
    from pytest_tfgrpo.recording.replay import open_replay

    return open_replay(argument, root)


def open_model_judge(model: Completer, *, votes: int, seed: int, concurrency: int) -> Judge:
    """Return the judge that a language model is."""
    from pytest_tfgrpo.scoring.judge.model import open_judge

    return open_judge(model, votes=votes, seed=seed, concurrency=concurrency)


def require_recordable(file: Path, identities: Mapping[str, Json]) -> None:
    """Raise RecordingError where a run of these cannot be added to a recording."""
    from pytest_tfgrpo.recording.writing import check_recordable

    check_recordable(file, identities)
