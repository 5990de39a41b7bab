"""``tfgrpo patterns promote``, ``reject``, ``deprecate``, ``restore`` and ``comment``."""

import re
from collections.abc import Callable
from pathlib import Path

from support.patterns.jobs import job_id, manifest, queue_with
from support.patterns.shelves import make_evidence, make_pattern, put
from support.tools import tfgrpo

from pytest_tfgrpo.patterns.jobs.queue import WorkOutcome
from pytest_tfgrpo.patterns.shelf.moves import write_candidate
from pytest_tfgrpo.patterns.shelf.pattern import PatternEvidence

NAME = "read-rows-at-once"
WHY = ("--by", "ann", "--reason", "it helped twice")


def evidence(n: int = 0) -> PatternEvidence:
    snapshot = manifest(n).snapshot
    assert snapshot is not None
    return make_evidence(job=job_id(n), commit=snapshot.commit, diff_sha256=snapshot.diff_sha256)


def proven(repository: Path, *seen_by: str) -> None:
    with queue_with(
        repository / "out/shop/learning", manifest(), manifest(1, trigger="self", approver="bot")
    ) as queue:
        queue.take("w1", only=job_id())
        queue.finish(job_id(), "w1", WorkOutcome(trigger="prove", scenario="one"))
        for reviewer in seen_by:
            queue.note_seen(job_id(), reviewer)


def test_a_candidate_is_promoted_once_nothing_keeps_it_from_that(repository: Path) -> None:
    shelf = put(repository)
    write_candidate(shelf, make_pattern(evidence=evidence()))
    said = tfgrpo("patterns", "promote", NAME, *WHY, code=1)
    assert f"job {job_id()} is not here" in said
    assert "--untested" in said
    proven(repository)
    said = tfgrpo("patterns", "promote", NAME, *WHY, code=1)
    assert f"run 'tfgrpo learn show {job_id()} --tests --reviewer YOU'" in said
    with queue_with(repository / "out/shop/learning") as queue:
        queue.note_seen(job_id(), "ann")
    said = tfgrpo("patterns", "promote", NAME, "--by", "bot", "--reason", "I like it", "--untested", code=1)
    assert "'bot' is an agent: it may comment" in said
    said = tfgrpo("patterns", "promote", NAME, *WHY, "--untested")
    assert said.startswith(f"{NAME} is promoted: .agent/patterns/active/{NAME}.md; commit it with ")
    assert "cannot be promoted: it lies in active" in tfgrpo(
        "patterns", "promote", NAME, *WHY, "--untested", code=1
    )


def test_a_pattern_with_its_log_is_shown(repository: Path, golden: Callable[[str, str], None]) -> None:
    write_candidate(put(repository), make_pattern(evidence=evidence()))
    tfgrpo("patterns", "comment", NAME, "--by", "bot", "--text", "Seen in three services.")
    tfgrpo("patterns", "reject", NAME, *WHY)
    assert "it lies in deprecated" in tfgrpo("patterns", "deprecate", NAME, *WHY, code=1)
    assert "cannot be restored:\n  evidence: " in tfgrpo("patterns", "restore", NAME, *WHY, code=1)
    proven(repository, "ann")
    tfgrpo("patterns", "restore", NAME, *WHY, "--untested")
    tfgrpo("patterns", "deprecate", NAME, *WHY)
    golden("patterns-show.txt", re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", tfgrpo("patterns", "show", NAME)))
    assert tfgrpo("patterns", "lint") == "1 pattern, nothing wrong\n"


def test_what_says_much_the_same_is_named(repository: Path) -> None:
    shelf = put(repository)
    proven(repository, "ann")
    write_candidate(shelf, make_pattern(evidence=evidence()))
    tfgrpo("patterns", "promote", NAME, *WHY, "--untested")
    write_candidate(shelf, make_pattern("rows", evidence=evidence(2)))
    with queue_with(repository / "out/shop/learning", manifest(2)) as queue:
        queue.take("w2", only=job_id(2))
        queue.finish(job_id(2), "w2", WorkOutcome(trigger="prove", scenario="two"))
        queue.note_seen(job_id(2), "ann")
    said = tfgrpo("patterns", "promote", "rows", *WHY, "--untested")
    assert f"it says much the same as {NAME}: deprecate that one if this takes its place" in said
    assert "much the same" not in tfgrpo("patterns", "deprecate", "rows", *WHY)


def test_answers_of_a_suite_keep_a_pattern_from_agents(repository: Path) -> None:
    shelf = put(repository)
    proven(repository, "ann")
    write_candidate(shelf, make_pattern(evidence=evidence(), lesson="Paint the cart turquoise 4711 at once."))
    (repository / "suite").mkdir()
    scenario = '{"id": "paint", "prompt": "Which colour?", "split": "dev", "domain": "shop", "checks": [%s]}'
    check = '{"kind": "exact", "value": "turquoise 4711"}'
    (repository / "suite/paint.scenario.json").write_text(scenario % check)
    said = tfgrpo("patterns", "promote", NAME, *WHY, "--untested", "--suite", "../suite", code=1)
    assert "lesson: it contains an answer of scenario 'paint'" in said
    assert "lesson: it contains an answer" not in tfgrpo("patterns", "lint")


def test_only_a_person_says_that_an_edit_was_reviewed(repository: Path) -> None:
    shelf = put(repository)
    proven(repository)
    write_candidate(shelf, make_pattern(evidence=evidence()))
    path = shelf.find(NAME).path
    path.write_text(path.read_text().replace("in memory.", "there."))
    assert "'bot' is an agent" in tfgrpo("patterns", "lint", "--fix", "--by", "bot", code=1)
    said = tfgrpo("patterns", "lint", "--fix", "--by", "ann")
    assert said.startswith(f"{NAME}: screened and stamped\n")


def test_learn_toml_says_who_may_decide(repository: Path) -> None:
    (repository / "learn.toml").write_text('approvers = ["bo"]\n')
    write_candidate(put(repository), make_pattern(evidence=evidence()))
    said = tfgrpo("patterns", "reject", NAME, *WHY, code=1)
    assert "'ann' is not among the approvers of learn.toml: bo" in said
    tfgrpo("patterns", "comment", NAME, "--by", "ann", "--text", "I would reject it.")
    tfgrpo("patterns", "reject", NAME, "--by", "bo", "--reason", "so would I")
