"""Sync: what is written for agents, and that nothing else is touched."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.patterns.shelves import make_body, make_pattern, put

from pytest_tfgrpo.core.errors import PatternError
from pytest_tfgrpo.patterns.learn_file import SKILL_FOLDERS
from pytest_tfgrpo.patterns.shelf.moves import ShelfDecision, move
from pytest_tfgrpo.patterns.shelf.pattern import Pattern, PatternStatus
from pytest_tfgrpo.patterns.shelf.shelf import Shelf
from pytest_tfgrpo.patterns.shelf.skill_text import is_as_written, is_ours, skill_text
from pytest_tfgrpo.patterns.shelf.sync import (
    BEGIN,
    END,
    LINES_MAX,
    SyncPlaces,
    apply,
    changes,
    with_lines,
)

ADA = ShelfDecision(by="ada", reason="it is so")
NAME = "read-rows-at-once"


def active(name: str = NAME, **changes: Any) -> Pattern:
    return make_pattern(name, **{"status": PatternStatus.ACTIVE, **changes})


def synced(shelf: Shelf, places: SyncPlaces = SyncPlaces(), **more: Any) -> list[tuple[str, str]]:  # noqa: B008
    """Sync, and return what was done to which file."""
    found = changes(shelf, places, **more)
    apply(found)
    return [(change.action, str(change.path.relative_to(shelf.root))) for change in found]


def test_the_skill_of_a_pattern(golden: Callable[[str, str], None]) -> None:
    text = skill_text(active())
    golden("pattern-skill.md", text)
    assert is_as_written(text)


def test_active_patterns_alone_become_skills_and_what_leaves_is_removed(tmp_path: Path) -> None:
    shelf = put(tmp_path, active(), make_pattern("new", id="p-000000000001"))
    files = [f"{folder}/{NAME}/SKILL.md" for folder in SKILL_FOLDERS]
    assert synced(shelf) == [("add", path) for path in files]
    assert (tmp_path / files[0]).read_text() == skill_text(active())
    assert synced(shelf) == []
    put(tmp_path, active(title="Rows"))
    assert synced(shelf) == [("change", path) for path in files]
    move(shelf, NAME, "deprecated", ADA)
    assert synced(shelf) == [("remove", path) for path in files]
    assert list((tmp_path / SKILL_FOLDERS[0]).iterdir()) == []


def test_a_folder_that_is_no_longer_wanted_loses_its_skills(tmp_path: Path) -> None:
    shelf = put(tmp_path, active())
    synced(shelf)
    assert synced(shelf, SyncPlaces(skills=(SKILL_FOLDERS[0],))) == [
        ("remove", f"{SKILL_FOLDERS[1]}/{NAME}/SKILL.md")
    ]


EDITS: list[Callable[[str], str]] = [
    lambda text: text.replace("one query", "two queries", 1),
    lambda text: text + "More.\n",
    lambda text: text.replace("description: ", "allowed-tools: Bash\ndescription: "),
]


@pytest.mark.parametrize("edit", EDITS)
def test_a_skill_that_somebody_edited_is_left_unless_forced(
    tmp_path: Path, edit: Callable[[str], str]
) -> None:
    shelf = put(tmp_path, active())
    synced(shelf)
    path = tmp_path / SKILL_FOLDERS[0] / NAME / "SKILL.md"
    path.write_text(edit(path.read_text()))
    assert is_ours(path.read_text())
    (kept,) = changes(shelf, SyncPlaces())
    assert (kept.action, kept.why.partition(";")[0]) == ("keep", "somebody edited it")
    before = path.read_text()
    synced(shelf)
    assert path.read_text() == before
    move(shelf, NAME, "deprecated", ADA)
    assert [action for action, _ in synced(shelf)] == ["keep", "remove"]
    move(shelf, NAME, "restored", ADA)
    synced(shelf, force=True)
    assert path.read_text() == skill_text(active())


@pytest.mark.parametrize(
    "text", ["", "mine", "---\nname: x\n---\n\nmine", "---\nmetadata: [\n---\n\nmine", "---\n- a\n---\n\n"]
)
def test_what_others_wrote_is_never_touched(tmp_path: Path, text: str) -> None:
    shelf = put(tmp_path, active())
    for name in (NAME, "other"):
        path = tmp_path / SKILL_FOLDERS[0] / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    assert [action for action, _ in synced(shelf, force=True)] == ["keep", "add"]
    move(shelf, NAME, "deprecated", ADA)
    assert [action for action, _ in synced(shelf, force=True)] == ["remove"]
    assert path.read_text() == text
    assert not is_ours(text)


@pytest.mark.parametrize(
    "place", [".claude", ".claude/skills", f".claude/skills/{NAME}", "AGENTS.md", "docs"]
)
def test_links_that_lead_out_are_refused(tmp_path: Path, place: str) -> None:
    root, out = tmp_path / "in", tmp_path / "out"
    root.mkdir()
    out.mkdir()
    shelf = put(root, active())
    (root / place).parent.mkdir(parents=True, exist_ok=True)
    (root / place).symlink_to(out)
    with pytest.raises(PatternError, match=r"leads out of|is a link"):
        changes(shelf, SyncPlaces(agents_md="AGENTS.md", docs=True))
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("place", ["../x.md", "/etc/x.md", "a/../../x.md", "."])
def test_places_lie_in_the_repository(tmp_path: Path, place: str) -> None:
    with pytest.raises(PatternError, match="leads out of"):
        changes(put(tmp_path, active()), SyncPlaces(agents_md=place))


def test_skill_folders_that_are_one_by_a_link_are_written_once(tmp_path: Path) -> None:
    (tmp_path / ".agents/skills").mkdir(parents=True)
    (tmp_path / ".claude").symlink_to(".agents")
    shelf = put(tmp_path, active())
    assert synced(shelf) == [("add", f".agents/skills/{NAME}/SKILL.md")]
    assert synced(shelf, SyncPlaces(skills=(".agents/skills",))) == []


def test_lines_in_a_memory_file_stand_between_markers(tmp_path: Path) -> None:
    shelf = put(tmp_path, active())
    places = SyncPlaces(skills=(), agents_md="AGENTS.md")
    path = tmp_path / "AGENTS.md"
    path.write_text("# Ours\n")
    assert synced(shelf, places) == [("change", "AGENTS.md")]
    assert path.read_text() == f"# Ours\n\n{BEGIN}\n* {active().lesson} ({NAME})\n{END}\n"
    path.write_text(path.read_text() + "\nMore.\n")
    put(tmp_path, active(lesson="Read once."))
    synced(shelf, places)
    assert path.read_text() == f"# Ours\n\n{BEGIN}\n* Read once. ({NAME})\n{END}\n\nMore.\n"
    move(shelf, NAME, "deprecated", ADA)
    synced(shelf, places)
    assert path.read_text() == "# Ours\nMore.\n"
    for broken in (f"{END}\n{BEGIN}", BEGIN, END, f"{BEGIN}{END}" * 2, f"{BEGIN}{END}{END}"):
        path.write_text(broken)
        with pytest.raises(PatternError, match="must stand there once each"):
            changes(shelf, places)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 32), max_size=90), st.text("ab\n", max_size=9))
def test_lines_keep_within_their_bytes_and_leave_the_rest(lengths: list[int], old: str) -> None:
    plain = active()
    patterns = [
        replace(plain, name=f"n{n}", lesson="wörd " * length + "end") for n, length in enumerate(lengths)
    ]
    text = with_lines(old, patterns, Path("x"))
    assert with_lines(text, patterns, Path("x")) == text
    assert text.startswith(old.rstrip())
    section = text[text.index(BEGIN) :].strip() if patterns else ""
    assert len(section.encode()) <= LINES_MAX
    shown = section.count("end (n") if patterns else 0
    more = f"* {len(patterns) - shown} more in " if shown < len(patterns) else "\x00"
    assert (more in section) is (shown < len(patterns))
    assert with_lines(text, [], Path("x")).strip() == old.strip()


def test_the_limit_of_lines_counts_bytes() -> None:
    patterns = [active(f"n{n}", lesson="ö" * 100) for n in range(30)]
    section = with_lines("", patterns, Path("x")).strip()
    assert LINES_MAX - 300 < len(section.encode()) <= LINES_MAX


def test_line_ends_of_a_checkout_on_windows_are_no_difference(tmp_path: Path) -> None:
    shelf, places = put(tmp_path, active()), SyncPlaces(agents_md="AGENTS.md", docs=True)
    synced(shelf, places)
    for path in (tmp_path / "AGENTS.md", tmp_path / "docs/patterns/index.md", *tmp_path.glob(".*/*/*/*.md")):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert synced(shelf, places) == []
    written = sorted(path for path in tmp_path.glob(".*/*/*/*.md") if ".agent" not in path.parts)
    move(shelf, NAME, "deprecated", ADA)
    removed = synced(shelf, places)
    assert {action for action, _ in removed} == {"remove"}
    assert written
    assert not any(path.exists() for path in written)


@pytest.mark.parametrize("old", ["# Ours\r\ntext\r\n", "# Ours  ", "\n\n", "a\n\n\n"])
def test_what_stood_in_a_memory_file_stays_to_the_byte(tmp_path: Path, old: str) -> None:
    text = with_lines(old, [active()], tmp_path)
    assert text.startswith(old)
    assert text.removeprefix(old).lstrip("\n").startswith(BEGIN)


@pytest.mark.parametrize("place", [".git/hooks", ".agent/patterns/active", "learn.toml"])
def test_places_of_git_and_of_the_patterns_themselves_are_refused(tmp_path: Path, place: str) -> None:
    shelf = put(tmp_path, active())
    for places in (SyncPlaces(skills=(place,)), SyncPlaces(agents_md=place)):
        with pytest.raises(PatternError, match="is of git or of the patterns themselves"):
            changes(shelf, places)


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path: Path) -> None:
    shelf = put(tmp_path, active())
    (tmp_path / ".claude").touch()
    with pytest.raises(PatternError, match=r"cannot write .*SKILL\.md: Not a directory; mend it"):
        synced(shelf)


def test_docs_get_links_alone(tmp_path: Path) -> None:
    shelf = put(tmp_path, active(title="Rows [at] once"))
    places = SyncPlaces(skills=())
    assert synced(shelf, places) == []
    assert synced(shelf, replace(places, docs=True)) == [("add", "docs/patterns/index.md")]
    page = tmp_path / "docs/patterns/index.md"
    assert f"* [Rows \\[at\\] once](../../.agent/patterns/active/{NAME}.md): Read all" in page.read_text()
    move(shelf, NAME, "deprecated", ADA)
    assert synced(shelf, places) == [("remove", "docs/patterns/index.md")]
    page.parent.mkdir(parents=True)
    page.write_text("# Mine\n")
    assert synced(shelf, places) == []
    with pytest.raises(PatternError, match="was not written by"):
        changes(shelf, replace(places, docs=True))


def test_an_excerpt_reaches_the_skill_in_a_fence_that_holds(tmp_path: Path) -> None:
    text = skill_text(active(body=make_body(excerpt="x = '```'\n---\n\ny")))
    assert "\n````python\n" in text
    assert is_as_written(text)


def test_a_place_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    shelf = put(tmp_path, active())
    (tmp_path / "AGENTS.md").write_bytes(b"\xff")
    with pytest.raises(PatternError, match=r"AGENTS\.md is not UTF-8; save it as UTF-8, then sync again"):
        changes(shelf, SyncPlaces(agents_md="AGENTS.md"))
    (tmp_path / "AGENTS.md").unlink()
    (tmp_path / "AGENTS.md").mkdir()
    with pytest.raises(PatternError, match=r"cannot read .*AGENTS\.md: .*; mend it, then sync again"):
        changes(shelf, SyncPlaces(agents_md="AGENTS.md"))


def test_links_of_others_stay_and_so_does_what_lies_beside_a_skill(tmp_path: Path) -> None:
    shelf = put(tmp_path, active())
    synced(shelf)
    skills = tmp_path / SKILL_FOLDERS[0]
    (skills / NAME / "notes.md").write_text("mine")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "SKILL.md").write_text(skill_text(active("linked")))
    (skills / "linked").symlink_to(tmp_path / "theirs")
    move(shelf, NAME, "deprecated", ADA)
    assert [action for action, _ in synced(shelf)] == ["remove", "remove"]
    assert [path.name for path in (skills / NAME).iterdir()] == ["notes.md"]
    assert (skills / "linked").is_symlink()
    assert (tmp_path / "theirs" / "SKILL.md").is_file()


def test_a_change_is_shown_as_a_patch_and_marks_of_markdown_are_plain(tmp_path: Path) -> None:
    shelf = put(tmp_path, active(lesson="Read *all* of `a_b` (once) <now>, [as] it is."))
    places = SyncPlaces(skills=(), agents_md="AGENTS.md", docs=True)
    (tmp_path / "AGENTS.md").write_text("# Ours\n")
    memory, page = changes(shelf, places)
    assert memory.diff(tmp_path).splitlines()[:4] == [
        "--- a/AGENTS.md",
        "+++ b/AGENTS.md",
        "@@ -1 +1,5 @@",
        " # Ours",
    ]
    assert "Read \\*all\\* of \\`a\\_b\\` \\(once\\) \\<now\\>, \\[as\\] it is." in page.new
    avoid = active(polarity="avoid")
    assert f"* Avoid: {avoid.lesson} ({NAME})" in with_lines("", [avoid], tmp_path)


def test_lines_reach_their_limit_to_the_byte() -> None:
    plain = active("n", lesson="x")
    room = LINES_MAX - len(with_lines("", [plain], Path("x")).strip().encode()) + 1
    full = with_lines("", [replace(plain, lesson="x" * room)], Path("x")).strip()
    assert (len(full.encode()), "more in" in full) == (LINES_MAX, False)
    over = with_lines("", [replace(plain, lesson="x" * (room + 1))], Path("x")).strip()
    assert over == f"{BEGIN}\n* 1 more in .agent/patterns/active\n{END}"
