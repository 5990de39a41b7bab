"""Recordings: the answers of a run in one file fit for git, and replays that cost nothing."""

from __future__ import annotations

from pytest_tfgrpo.harness.recording.file import Recording
from pytest_tfgrpo.harness.recording.replay import Replay, open_replay
from pytest_tfgrpo.harness.recording.writing import Written, check_recordable, describe, record

__all__ = ["Recording", "Replay", "Written", "check_recordable", "describe", "open_replay", "record"]
