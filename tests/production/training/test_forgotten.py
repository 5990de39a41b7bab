"""Forgetting reaches the files of jobs, and names the lessons that rest on what is gone."""

from pathlib import Path

from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.training.forgotten import forget_learning
from pytest_tfgrpo.production.training.versions.artifacts import FolderArtifacts
from pytest_tfgrpo.production.training.versions.policies import Policies
from pytest_tfgrpo.production.training.versions.sources import LessonSource


class Known(Policies):
    """Versions whose sources a test says."""

    def __init__(self, bus: Bus, folder: Path, sources: dict[str, tuple[LessonSource, ...]]) -> None:
        super().__init__(bus, FolderArtifacts(folder))
        self._known = sources

    def whole(self):  # type: ignore[no-untyped-def]
        return [
            type("Row", (), {"name": name, "job": f"job-{name}", "state": "approved"}) for name in self._known
        ]

    def sources(self, name: str) -> tuple[LessonSource, ...]:
        return self._known[name]


def job(folder: Path, name: str, trajectory: str) -> Path:
    place = folder / name
    (place / "out").mkdir(parents=True)
    (place / "out" / "journal.jsonl").write_text("an answer")
    (place / "evidence.jsonl").write_text(f'{{}}\n{{"trajectory_id":"{trajectory}"}}\n')
    return place


def test_jobs_with_it_lose_their_files_and_lessons_are_named(bus: Bus, tmp_path: Path) -> None:
    gone, kept = job(tmp_path, "one", "AB-1"), job(tmp_path, "two", "cd-2")
    rests = LessonSource(lesson="l1", text="Use it.", trajectories=("AB-1",))
    other = LessonSource(lesson="l2", text="Use that.", trajectories=("cd-2",))
    policies = Known(bus, tmp_path, {"v1": (), "v2": (rests, other), "v3": (rests,)})
    policies.files.write("rl-logs/one/journal.jsonl", b"an answer")
    policies.files.write("rl-logs/two/journal.jsonl", b"an answer")
    found = forget_learning(policies, tmp_path, frozenset({"ab-1"}))
    assert found.jobs == ("one",)
    assert found.lessons == ((rests, ("v2", "v3")),)
    assert (gone.exists(), kept.exists()) == (False, True)
    assert [path.name for path in (tmp_path / "rl-logs").iterdir()] == ["two"]


def test_where_nothing_is_forgotten_nothing_is_removed(bus: Bus, tmp_path: Path) -> None:
    kept = job(tmp_path, "one", "ab-1")
    assert forget_learning(Policies(bus, FolderArtifacts(tmp_path)), tmp_path, frozenset()) == ((), (), ())
    assert forget_learning(
        Policies(bus, FolderArtifacts(tmp_path)), tmp_path / "none", frozenset({"ab-1"})
    ) == ((), (), ())
    assert kept.exists()
