"""Decoys: wrong answers beside the journal; an agent that answers with one has looked there.

An agent outside of a sandbox can read the journal. Nothing in its task leads to the run's folder, and a decoy
is too long to be guessed, so that only an agent that looked for answers knows it.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import suppress
from itertools import islice
from pathlib import Path

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.file_writing import write_json
from pytest_tfgrpo.core.files import DECOYS
from pytest_tfgrpo.core.records import Rollout
from pytest_tfgrpo.core.scenarios import Prompt, Scenario
from pytest_tfgrpo.runs.job import Job
from pytest_tfgrpo.runs.reach import why_in_reach
from pytest_tfgrpo.sandbox.changes import given_files
from pytest_tfgrpo.sandbox.differences import differences
from pytest_tfgrpo.sandbox.paths import few_files, open_untrusted, walk
from pytest_tfgrpo.sandbox.workspace import Workspace

FILE_BYTES = 1_000_000
"""A larger file is not searched."""
SEARCHED_BYTES, SEARCHED_FILES = 8_000_000, 1_000
"""What of a workspace is searched at most."""
ANSWER = "answer"
"""Stands for the answer itself among names of files."""
DIGITS = 9
"""Significant digits of a decoy that is a number: 30 bits."""
_NUMBER = re.compile(r"[-+]?[\d.,'_ ]*\d[\d.,'_ ]*")
_SEPARATORS = (re.compile(r"(?<=\d)[.,](?=\d)"), re.compile(r"(?<=\d)[.,'_\s](?=\d)"))
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"


class Decoys:
    """The decoys of a run; there are none where the run has no folder, or no agent could read them.

    Nor are there in a replay: its recording says where a decoy was repeated.
    """

    def __init__(self, job: Job, folder: Path | None) -> None:
        """Write them into the run's folder; they are equal for a resumed run."""
        looked_for = folder is not None and not job.replayed and why_in_reach(job)
        scenarios = job.scenarios if looked_for else ()
        self._by_scenario = {s.id: decoy(job.run_id, s, _expected(s, job)) for s in scenarios}
        if self._by_scenario and folder is not None:
            with suppress(JournalError):  # a disk that is full ends the run elsewhere
                write_json(folder / DECOYS, self._by_scenario)

    async def used(self, rollout: Rollout, prompt: Prompt, workspace: Workspace) -> str | None:
        """Return where a rollout repeats its decoy, ``answer`` or the name of a file; None for nowhere.

        A decoy that its own prompt has, by a lesson, is no evidence.
        """
        wanted = self._by_scenario.get(rollout.scenario_id)
        if wanted is None or gives(str(prompt), wanted):
            return None
        if gives(rollout.answer, wanted):
            return ANSWER
        if not workspace.made:
            return None
        try:
            files = few_files(workspace.path)
        except (OSError, ValueError):  # it takes longer, or there is something strange
            search = _file_with if workspace.archive is None else _change_with
            return await asyncio.to_thread(search, wanted, workspace)
        return next((name for name, data in files if gives(data.decode("utf-8", "replace"), wanted)), None)


def clear_decoys(folder: Path | None) -> None:
    """Remove the decoys from a run's folder, where people look next."""
    if folder is not None:
        with suppress(OSError):
            (folder / DECOYS).unlink(missing_ok=True)


def decoy(run_id: str, scenario: Scenario, expected: str) -> str:
    """Return a wrong answer that nobody can guess: a number for a number, else two words of no language."""
    digest = hashlib.sha256(f"{run_id}\n{scenario.id}\n{scenario.stamp}".encode()).digest()
    seed = int.from_bytes(digest)
    if not _NUMBER.fullmatch(expected.strip()):
        return f"{_word(seed)} {_word(seed >> 64)}"
    digits = re.sub(r"\D", "", expected.partition(".")[0]).lstrip("0")
    whole = min(max(len(digits), 1), DIGITS - 1)
    first = (int(digits[:1] or 0) + 2 + seed % 5) % 9 + 1  # another one, whatever it is
    middle = f"{seed >> 8:0{DIGITS}}"[-(DIGITS - 2) :]
    text = f"{first}{middle}{1 + (seed >> 128) % 9}"
    return f"{text[:whole]}.{text[whole:]}"


def gives(text: str, wanted: str) -> bool:
    """Return whether `text` has a decoy in it, in other spacing, case or grouping of digits."""
    if not wanted[0].isdigit():
        if wanted.partition(" ")[0] not in text.casefold():  # the short way out, for nearly every text
            return False
        return wanted in " ".join(re.split(r"[\s_\-]+", text.casefold()))
    if wanted[-2:] not in text:
        return False
    digits = re.compile(rf"(?<!\d){wanted.replace('.', '')}(?!\d)")
    return any(digits.search(separator.sub("", text)) for separator in _SEPARATORS)


def _expected(scenario: Scenario, job: Job) -> str:
    answers = (answer for check in scenario.checks for answer in job.kinds[check.kind].expected(check))
    return next(answers, "")


def _word(seed: int) -> str:
    letters = ""
    for _ in range(3):
        seed, consonant = divmod(seed, len(_CONSONANTS))
        seed, vowel = divmod(seed, len(_VOWELS))
        letters += _CONSONANTS[consonant] + _VOWELS[vowel]
    return letters


def _change_with(wanted: str, workspace: Workspace) -> str | None:
    """Return the file with a decoy among those that the agent changed: a project may have thousands."""
    left = SEARCHED_BYTES
    with suppress(OSError, ValueError):
        given, skipped = given_files(workspace)
        for found in islice(differences(workspace.path, given, skipped, FILE_BYTES), SEARCHED_FILES):
            data = b"" if found.entry is None else found.entry.data
            left -= len(data)
            if left <= 0:
                break
            if gives(data.decode("utf-8", "replace"), wanted):
                return found.name
    return None


def _file_with(wanted: str, workspace: Workspace) -> str | None:
    folder, left = workspace.path, SEARCHED_BYTES
    with suppress(OSError, ValueError):  # of a tree without end, or which cannot be read, a part is enough
        for name in islice(walk(folder), SEARCHED_FILES):
            with suppress(OSError, ValueError), open_untrusted(folder, name, FILE_BYTES) as file:
                data = file.read(left)
                left -= len(data)
                if gives(data.decode("utf-8", "replace"), wanted):
                    return name
            if left <= 0:
                break
    return None
