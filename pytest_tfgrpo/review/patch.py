"""What marks propose for a whole suite, as a unified diff of its scenario files, and written to them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath

from pytest_tfgrpo.core.errors import ScenarioError
from pytest_tfgrpo.core.files import SCENARIO_SUFFIXES, open_plain, write_atomic
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.records import Rollout, Run, Score
from pytest_tfgrpo.core.scenarios import Scenario
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.review.disagreements import Review, ReviewedAnswer, has_passed, scored
from pytest_tfgrpo.review.proposals import CheckProposal, NeedsPerson, propose
from pytest_tfgrpo.suite.documents.document import Refused
from pytest_tfgrpo.suite.documents.rewriting import yaml_block
from pytest_tfgrpo.suite.scenario_edits import CannotEditError, FileEditor
from pytest_tfgrpo.suite.scenario_files import read_scenarios_text, scenarios_in
from pytest_tfgrpo.suite.suite_files import SuiteFile, source_of

CONTEXT = 3
"""Lines around a change."""
COPY = "-reviewed"
"""End of the id of a scenario that is a changed copy."""
LONGEST_ID = 128
"""Characters of a scenario's id."""
NO_NEWLINE = "\\ No newline at end of file\n"
MARK = b"\xef\xbb\xbf"
"""Byte order mark of UTF-8."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RewrittenFile:
    """A scenario file with its new text; one that is new was empty before."""

    file: SuiteFile
    text: str

    @property
    def diff(self) -> str:
        """The change as a unified diff, as ``git apply`` and ``patch -p1`` take it."""
        name = self.file.name
        old = _quoted(f"a/{name}") if self.file.text else "/dev/null"
        before, after = _lines(self.file.text), _lines(self.text)
        parts = difflib.unified_diff(before, after, old, _quoted(f"b/{name}"), n=CONTEXT)
        return "".join(part if part.endswith("\n") else f"{part}\n{NO_NEWLINE}" for part in parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class SuiteChange:
    """All that follows from the marks of a run."""

    proposals: tuple[CheckProposal, ...]
    left: tuple[NeedsPerson, ...]
    files: tuple[RewrittenFile, ...]

    @property
    def diff(self) -> str:
        """All changes as one unified diff; empty without any."""
        return "".join(changed.diff for changed in self.files)


def suite_change(
    run: Run, review: Review, files: Mapping[str, SuiteFile], root: Path, *, new: bool = False
) -> SuiteChange:
    """Return what follows from a review for the files of its suite; raises ScenarioError.

    With `new` the scenarios stay as they are, and each changed one is a copy in a file of its own.
    """
    marked = {answer.rollout.rollout_id for answer in review.answers}
    others: dict[str, list[tuple[Rollout, Score]]] = {}
    for rollout, score in scored(run):
        if rollout.rollout_id not in marked and rollout.status != "error":
            others.setdefault(rollout.scenario_id, []).append((rollout, score))
    taken = {scenario.id for scenario in run.scenarios}
    editors = {name: FileEditor(file) for name, file in files.items()}
    proposals: list[CheckProposal] = []
    left: list[NeedsPerson] = []
    for answers in _by_scenario(review):
        scenario = answers[0].scenario
        file = files.get(source_of(scenario))
        reason = "" if file is not None else f"the test function {scenario.checker} checks it"
        if new and not reason and (_copy_id(scenario) in taken or _copy_path(file, scenario).exists()):
            reason = f"{_copy_id(scenario)} is there already"
        if file is None or reason:
            left.append(NeedsPerson(scenario, reason, tuple(answers)))
            continue
        beside = [(r, has_passed(s, scenario)) for r, s in others.get(scenario.id, ())]
        found = propose(file, answers, beside, _always if new else editors[file.name].can_hold)
        if isinstance(found, CheckProposal):
            proposals.append(found)
        else:
            left.append(found)
    if new:
        changed = list(_copies(proposals, files))
    else:
        changed, stuck = _rewritten(proposals, files, editors)
        gone = {one.scenario.id for one in stuck}
        proposals, left = [one for one in proposals if one.scenario.id not in gone], left + stuck
    for one in changed:
        scenarios_in(one.text, one.file.path, root=root, kinds=one.file.kinds)
    return SuiteChange(proposals=tuple(proposals), left=tuple(left), files=tuple(changed))


def _rewritten(
    proposals: Sequence[CheckProposal], files: Mapping[str, SuiteFile], editors: Mapping[str, FileEditor]
) -> tuple[list[RewrittenFile], list[NeedsPerson]]:
    """Return the files with what they can take, and what they cannot."""
    of: dict[str, dict[str, CheckProposal]] = {}
    for one in proposals:
        of.setdefault(source_of(one.scenario), {})[one.scenario.id] = one
    changed: list[RewrittenFile] = []
    stuck: list[NeedsPerson] = []
    for name, wanted in of.items():
        fit = {id_: one.fields for id_, one in wanted.items()}
        try:
            text = editors[name].text(fit)
        except CannotEditError:
            for id_, one in wanted.items():
                try:
                    editors[name].text({id_: one.fields})
                except CannotEditError as error:
                    del fit[id_]
                    reason = f"its file cannot change there: {error}"
                    stuck.append(NeedsPerson(one.scenario, reason, one.answers))
            text = editors[name].text(fit)
        if fit:
            changed.append(RewrittenFile(file=files[name], text=text))
    return changed, stuck


def _by_scenario(review: Review) -> Iterator[list[ReviewedAnswer]]:
    """Yield the answers of each scenario on which checks and people disagree."""
    of: dict[str, list[ReviewedAnswer]] = {}
    for answer in review.answers:
        of.setdefault(answer.scenario.id, []).append(answer)
    yield from (row for row in of.values() if any(a.is_false_pass or a.is_false_fail for a in row))


def _copies(proposals: Sequence[CheckProposal], files: Mapping[str, SuiteFile]) -> Iterator[RewrittenFile]:
    for one in proposals:
        file = files[source_of(one.scenario)]
        path = _copy_path(file, one.scenario)
        written = {**file.written[one.scenario.id].defaults, **file.written[one.scenario.id].data}
        data = {**written, "id": _copy_id(one.scenario), "split": one.scenario.split, **one.fields}
        name = PurePosixPath(file.name).with_name(path.name).as_posix()
        empty = SuiteFile(path=path, name=name, text="", kinds=file.kinds)
        yield RewrittenFile(file=empty, text=f"# {one.scenario.id}, as a review has it\n{yaml_block(data)}")


def _copy_id(scenario: Scenario) -> str:
    return scenario.id[: LONGEST_ID - len(COPY)] + COPY


def _copy_path(file: SuiteFile | None, scenario: Scenario) -> Path:
    assert file is not None
    return file.path.with_name(_copy_id(scenario) + SCENARIO_SUFFIXES[0])


def _always(_id: str, _fields: Mapping[str, Json]) -> bool:
    return True


def write_files(files: Sequence[RewrittenFile]) -> None:
    """Write changed scenario files, each whole; raises ScenarioError if one is not as it was read."""
    marks = {changed.file.name: _mark_of(changed.file) for changed in files}
    for changed in files:
        write_atomic(changed.file.path, [marks[changed.file.name], changed.text.encode()])


def _mark_of(file: SuiteFile) -> bytes:
    """Return the byte order mark of a file that is as it was read; raises ScenarioError if it is not."""
    if not file.text and not file.path.exists():
        return b""
    try:
        same = read_scenarios_text(file.path) == file.text
        with open_plain(file.path) as opened:
            mark = opened.read(len(MARK))
    except (Refused, OSError) as error:
        raise ScenarioError(f"{file.name} cannot be read again: {error}") from None
    if not same:
        raise ScenarioError(
            f"{file.name} changed while its new text was made; nothing was written, try again"
        )
    return mark if mark == MARK else b""


def _lines(text: str) -> list[str]:
    """Return the lines of a text with their ends, as diff and patch part them."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _quoted(name: str) -> str:
    """Return the name of a file as git writes it in a diff."""
    if name.isascii() and name.isprintable() and not set(name) & set('"\\'):
        return name + ("\t" if " " in name else "")
    octal = "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03o}" for byte in name.encode()
    )
    return f'"{octal}"'
