"""``tfgrpo patterns sync``."""

from pathlib import Path

from support.patterns.shelves import make_pattern, put
from support.tools import tfgrpo

from pytest_tfgrpo.patterns.shelf.pattern import PatternStatus

NAME = "read-rows-at-once"


def test_files_of_agents_are_checked_and_brought_up_to_date(repository: Path) -> None:
    assert tfgrpo("patterns", "sync") == "everything is up to date\n"
    put(repository, make_pattern(status=PatternStatus.ACTIVE))
    assert "2 files are not as the active patterns are" in tfgrpo("patterns", "sync", "--check", code=1)
    assert not (repository / ".claude").exists()
    said = tfgrpo("patterns", "sync", "--docs").splitlines()
    assert said == [
        f"added  .agents/skills/{NAME}/SKILL.md",
        f"added  .claude/skills/{NAME}/SKILL.md",
        "added  docs/patterns/index.md",
    ]
    assert tfgrpo("patterns", "sync", "--check") == "everything is up to date\n"
    skill = repository / ".claude/skills" / NAME / "SKILL.md"
    skill.write_text(skill.read_text() + "More.\n")
    assert "SKILL.md: somebody edited it; take that over" in tfgrpo("patterns", "sync", code=1)
    assert tfgrpo("patterns", "sync", "--force") == f"changed  .claude/skills/{NAME}/SKILL.md\n"


def test_learn_toml_says_what_is_kept_up_to_date(repository: Path) -> None:
    put(repository, make_pattern(status=PatternStatus.ACTIVE))
    (repository / "learn.toml").write_text('skills = []\nagents_md = "AGENTS.md"\n')
    assert tfgrpo("patterns", "sync") == "added  AGENTS.md\n"
    assert f"({NAME})" in (repository / "AGENTS.md").read_text()
