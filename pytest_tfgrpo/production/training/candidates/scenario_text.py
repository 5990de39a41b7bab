"""A candidate as the text of a scenario file; what people wrote is data in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pytest_tfgrpo.core.errors import ScenarioError, StoreError
from pytest_tfgrpo.core.file_writing import write_text
from pytest_tfgrpo.core.texts.text import cut, line, plural
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.candidates.candidates import ScenarioCandidate
from pytest_tfgrpo.production.view.queries import ViewPlace, payload_at
from pytest_tfgrpo.production.view.view import TRAJECTORIES
from pytest_tfgrpo.production.view.wording import prompt_of
from pytest_tfgrpo.scoring.checks.registry import KINDS
from pytest_tfgrpo.suite.documents.rewriting import yaml_block
from pytest_tfgrpo.suite.scenario_files import scenarios_in

SUFFIX = ".scenario.yaml"
_LONGEST_VALUE = 200
"""Characters of an expected text that an answer must contain; of a longer one a judge decides."""
_LONGEST_CRITERION = 1800
_SHOWN = 5
HEAD = """\
# From production: {trajectory}; {owners} said what is right{reward}.
# Before you use it: take out what is private, and see that the checks say what a right answer is.
"""


def prompt_at(bus: Bus, candidate: ScenarioCandidate) -> tuple[str, str]:
    """Return a candidate's prompt and the id of its trajectory; raises StoreError where it is gone."""
    payload = payload_at(bus, ViewPlace(stream=TRAJECTORIES, sequence=candidate.sequence, id=""))
    if payload is None:
        raise StoreError(f"the trajectory of {candidate.id} is no longer on the bus; list candidates again")
    return prompt_of(payload), str(payload["trajectory_id"])


def candidate_text(bus: Bus, candidate: ScenarioCandidate) -> str:
    """Return the scenario file of a candidate; raises StoreError and ScenarioError."""
    prompt, trajectory = prompt_at(bus, candidate)
    reward = "" if candidate.reward is None else f"; mean reward {candidate.reward:.2f}"
    head = HEAD.format(
        trajectory=line(trajectory, 80), owners=plural(candidate.owners, "user"), reward=reward
    )
    others = [f"# also expected: {line(value, 150)}\n" for value in candidate.expected[1:_SHOWN]]
    text = "".join([head, *others, yaml_block(_fields(candidate, prompt))])
    path = Path(f"{candidate.id}{SUFFIX}")
    loaded = scenarios_in(text, path, root=Path(), kinds=KINDS)
    if [(one.id, one.prompt) for one in loaded] != [(candidate.id, prompt)]:
        raise ScenarioError(f"{path} would not be read as it was written; leave {candidate.id} out")
    return text


def _fields(candidate: ScenarioCandidate, prompt: str) -> dict[str, Json]:
    fields: dict[str, Json] = {
        "id": candidate.id,
        "domain": candidate.domain,
        "split": "train",
        "tags": ["production"],
        "prompt": prompt,
    }
    rubric = [
        f"The answer heeds what a user said of another answer: {cut(text, _LONGEST_CRITERION)}"
        for text in candidate.corrections
    ]
    if candidate.expected:
        value = load_json(candidate.expected[0])
        check = _check_of(value)
        if check is not None:
            fields["checks"] = [check]
        else:
            rubric.insert(0, f"The answer says what this says: {cut(str(value), _LONGEST_CRITERION)}")
    if rubric:
        fields["rubric"] = rubric
    if "checks" not in fields:
        fields["truth"] = "judge"
    return fields


def _check_of(value: Json) -> Mapping[str, Json] | None:
    """Return the check for an expected value; None for a text that no answer repeats."""
    if isinstance(value, str):
        plain = value.strip()
        return {"kind": "contains", "value": plain} if 0 < len(plain) <= _LONGEST_VALUE else None
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"kind": "number", "value": value}
    return {"kind": "json", "value": value}


def write_candidates(bus: Bus, candidates: list[ScenarioCandidate], folder: Path) -> list[Path]:
    """Write a scenario file for each candidate, or none, and none over one that exists; return them.

    Raises StoreError, ScenarioError and JournalError.
    """
    texts = {folder / f"{one.id}{SUFFIX}": candidate_text(bus, one) for one in candidates}
    for path in texts:
        if path.exists():
            raise StoreError(f"{path} exists, and is left as it is; leave its id out, or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        write_text(path, text)
    return list(texts)
