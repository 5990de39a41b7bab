"""The library: the active lessons, changed only by operations, identified by content (decisions 15, 21).

Ids are immutable: a change is a new revision that names its parents, a removal an operation with a reason.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.core.files import read_plain, write_atomic
from pytest_tfgrpo.core.lessons import Experience, Library, Operation, Refusal, Revision
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.words import content
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.stamp import identify, stamp
from pytest_tfgrpo.core.wire.wire import from_wire, to_wire
from pytest_tfgrpo.learning.library.experience_lines import check
from pytest_tfgrpo.learning.library.learned_effects import read_effects
from pytest_tfgrpo.learning.library.refusals import refusal_of
from pytest_tfgrpo.privacy.redact import redact

if TYPE_CHECKING:
    from pytest_tfgrpo.learning.library.screen import Screen

SCHEMA = "tfgrpo.library/1"
NEAR_DUPLICATE = 0.8
"""Share of common content words (Jaccard) from which two lessons with the same names and numbers are one."""
SIZE_CAP = "size cap: "
"""Start of the reason of a removal that makes room."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Diff:
    """The difference of two libraries; lessons of equal content are equal, whatever their ids."""

    added: tuple[Experience, ...]
    removed: tuple[Experience, ...]
    changed: tuple[tuple[tuple[Experience, ...], Experience], ...]
    """(what it supersedes, new revision)."""


def empty() -> Library:
    """Return the library without lessons."""
    return of(())


def of(experiences: Iterable[Experience], lineage: tuple[str, ...] = ()) -> Library:
    """Return the library of `experiences`, whatever their order."""
    ordered = tuple(sorted(experiences, key=lambda e: (e.domain, e.polarity != "do", e.summary32, e.id)))
    return Library(experiences=ordered, hash=stamp(sorted(map(visible_stamp, ordered))), lineage=lineage)


def visible_stamp(experience: Experience) -> str:
    """Return the stamp of what prompts can see of a lesson and of what decides whether they do."""
    return stamp(
        {
            "domain": experience.domain,
            "prompt_pack_id": experience.prompt_pack_id,
            "polarity": experience.polarity,
            "summary32": experience.summary32,
            "stamp_signature": experience.stamp_signature,
            "reward": to_wire(experience.reward),
        }
    )


def apply(
    library: Library, operations: Iterable[Operation], *, screen: Screen, cap: int, epoch: int
) -> Revision:
    """Return what `operations`, in order, make of `library`; one that may not be applied is refused.

    More than `cap` lessons of a domain: those with the weakest evidence are removed.
    """
    draft = _Draft(library, screen)
    for operation in operations:
        draft.take(operation)
    draft.trim(cap)
    return draft.revision(epoch)


def carry_out(library: Library, operations: Iterable[Operation], *, cap: int, epoch: int) -> Revision:
    """Return `library` after operations that were already screened; as with `apply`, `cap` holds.

    Raises KeyError where one of them changes a lesson that is not active.
    """
    draft = _Draft(library, None)
    for operation in operations:
        draft.carry_out(operation)
    draft.trim(cap)
    return draft.revision(epoch)


def is_trim(operation: Operation) -> bool:
    """Return whether an operation was made by a size cap, and so follows from the others."""
    return operation.kind == "remove" and operation.reason.startswith(SIZE_CAP)


def says_the_same(one: Experience, other: Experience) -> bool:
    """Return whether two lessons are near duplicates."""
    return _Gist.of(one).resembles(_Gist.of(other))


def as_of(start: Library, revisions: Iterable[Revision], epoch: int) -> Library:
    """Return the library as it stood at the end of `epoch`, given the one that the run started with."""
    past = [revision for revision in revisions if revision.epoch <= epoch]
    return max(past, key=lambda revision: revision.epoch).library if past else start


def rebase(library: Library, packs: Mapping[str, PromptPack], *, run_id: str, created_at: str) -> Revision:
    """Return the revision that stamps every lesson with the pack of its domain in `packs`, as it is now.

    It is for use after a person has reviewed a change of the packs; a lesson without pack is left alone.
    """
    operations = []
    for old in library.experiences:
        pack = packs.get(old.domain) or packs.get("*")
        if pack is not None and pack.stamp != old.stamp_signature:
            new = replace(
                old,
                id=identify("rebase", run_id, old.id, pack.stamp),
                prompt_pack_id=pack.id,
                stamp_signature=pack.stamp,
                parents=(old.id,),
                created_at=created_at,
            )
            operations.append(
                Operation(kind="update", experience=new, targets=(old.id,), reason="the prompt pack changed")
            )
    return _carried_out(library, operations, epoch=0)


def diff(a: Library, b: Library, history: Iterable[Experience] = ()) -> Diff:
    """Return how `b` differs from `a`; `history` may hold the revisions between the two."""
    kept = _common(a, b)
    old = {e.id: e for e in _without(a, kept)}
    parents = {e.id: e.parents for e in (*history, *b.experiences)}
    added, changed, superseded = [], [], set[str]()
    for new in _without(b, kept):
        ancestors = _ancestors(new.id, parents) & old.keys()
        superseded |= ancestors
        if ancestors:
            changed.append((tuple(old[id_] for id_ in sorted(ancestors)), new))
        else:
            added.append(new)
    return Diff(
        added=tuple(added),
        removed=tuple(e for e in old.values() if e.id not in superseded),
        changed=tuple(changed),
    )


def without(library: Library, ids: Collection[str]) -> Library:
    """Return the library after some lessons are left out, by id."""
    return _successor(library, [e for e in library.experiences if e.id not in ids])


def load_library(path: Path) -> Library:
    """Return the library in the file at `path`; raises StoreError naming file, place and value."""
    try:
        data = json.loads(read_plain(path))
    except OSError as error:
        raise StoreError(f"cannot read the library {path}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is not a library: it is not JSON: {error}") from None
    _require(path, "library", data)
    experiences = {}
    for number, item in enumerate(data["experiences"]):
        place = f"/experiences/{number}"
        _require(path, "experience", item, place)
        try:
            experience = from_wire(Experience, item)
            check(experience)  # a schema lets NaN pass
        except ValueError as error:
            raise StoreError(f"{path}: {place}: {error}") from None
        if experience.id in experiences:
            raise StoreError(f"{path}: {place}/id: {experience.id!r} occurs twice")
        experiences[experience.id] = experience
    looks = {split: tuple(variants) for split, variants in data.get("looks", {}).items()}
    effects = read_effects(path, data.get("effects", []))
    library = of(experiences.values(), tuple(data.get("lineage", ())))
    library = replace(library, looks=looks, effects=effects)
    if library.hash != data["hash"]:
        raise StoreError(
            f"{path}: /hash: {data['hash']!r} is not the hash of its lessons; if they were edited on purpose "
            f"and reviewed, set it to {library.hash!r}"
        )
    return library


def library_text(library: Library) -> str:
    """Return the text of a library file."""
    data = {
        "schema": SCHEMA,
        "hash": library.hash,
        "lineage": list(library.lineage),
        "experiences": to_wire(library.experiences),
        **({"looks": to_wire(library.looks)} if library.looks else {}),
        **({"effects": to_wire(library.effects)} if library.effects else {}),
    }
    return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"


def save_library(path: Path, library: Library) -> None:
    """Write `library` to `path`, atomically; raises StoreError naming the file."""
    text = library_text(library)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, [text.encode()])
    except OSError as error:
        raise StoreError(f"cannot write the library {path}: {error}") from error


class _Draft:
    """A library while operations are applied to it."""

    def __init__(self, library: Library, screen: Screen | None) -> None:
        self._library = library
        self._screen = screen
        self._in_force = {e.id: e for e in library.experiences}
        self._used_ids = set(self._in_force)
        self._gists = {e.id: _Gist.of(e) for e in library.experiences}
        self._applied: list[Operation] = []
        self._refused: list[Refusal] = []

    def take(self, operation: Operation) -> None:
        """Apply `operation`, or refuse it."""
        problem = self._problem(operation)
        if problem:
            self._refused.append(refusal_of(operation, *problem))
            return
        operation = replace(operation, reason=redact(operation.reason))
        new = operation.experience
        if new is not None:
            new = replace(new, parents=tuple(dict.fromkeys((*operation.targets, *new.parents))))
            operation = replace(operation, experience=new)
        self.carry_out(operation)

    def trim(self, cap: int) -> None:
        """Remove the lessons with the weakest evidence from domains with more than `cap`."""
        for domain, count in Counter(e.domain for e in self._in_force.values()).items():
            lessons = sorted((e for e in self._in_force.values() if e.domain == domain), key=_evidence)
            for weakest in lessons[: max(0, count - cap)]:
                reason = f"{SIZE_CAP}domain {domain!r} holds {cap} lessons, and its evidence was the weakest"
                self.carry_out(Operation(kind="remove", targets=(weakest.id,), reason=reason))

    def revision(self, epoch: int) -> Revision:
        """Return what was done."""
        return Revision(
            epoch=epoch,
            library=_successor(self._library, self._in_force.values()),
            applied=tuple(self._applied),
            refused=tuple(self._refused),
        )

    def carry_out(self, operation: Operation) -> None:
        """Apply `operation` as it is."""
        for target in operation.targets:
            del self._in_force[target], self._gists[target]
        new = operation.experience
        if new is not None:
            self._in_force[new.id] = new
            self._used_ids.add(new.id)
            self._gists[new.id] = _Gist.of(new)
        self._applied.append(operation)

    def _problem(self, operation: Operation) -> tuple[str, str] | None:
        """Return (code, reason) why `operation` may not be applied, or None."""
        new, targets = operation.experience, operation.targets
        if unknown := [target for target in targets if target not in self._in_force]:
            return "unknown_id", f"{unknown[0]!r} is not the id of an active lesson"
        if problem := _misshapen(operation):
            return "malformed", problem
        if new is None:
            return None
        if new.id in self._used_ids:
            return "duplicate", f"id {new.id!r} is taken; ids are never reused"
        for target in targets:
            if self._in_force[target].domain != new.domain:
                return "malformed", f"{target!r} belongs to domain {self._in_force[target].domain!r}"
        refusal = None if self._screen is None else self._screen.refuse(new)
        if refusal is not None:
            return refusal
        gist = _Gist.of(new)
        for id_, other in self._gists.items():
            if id_ not in targets and gist.resembles(other):
                return "duplicate", f"lesson {id_!r} says the same"
        return None


@dataclass(frozen=True, slots=True)
class _Gist:
    """The content of a lesson that can be compared."""

    scope: tuple[str, str, str]
    names: tuple[str, ...]
    """Tools, identifiers and numbers, in order of mention."""
    terms: frozenset[str]

    @staticmethod
    def of(experience: Experience) -> _Gist:
        tools = {stat.tool.casefold() for stat in experience.tool_stats}
        tokens = re.findall(r"[\w.]*\w", experience.summary32.casefold())
        return _Gist(
            (experience.domain, experience.stamp_signature, experience.polarity),
            tuple(t for t in tokens if t in tools or not t.isalpha()),
            content(experience.summary32) or frozenset(tokens),
        )

    def resembles(self, other: _Gist) -> bool:
        if self.scope != other.scope or self.names != other.names:
            return False
        shared = len(self.terms & other.terms)
        return shared >= NEAR_DUPLICATE * (len(self.terms) + len(other.terms) - shared)


def _misshapen(operation: Operation) -> str | None:
    """Return what is wrong with the shape of `operation`, or None."""
    count = len(operation.targets)
    if count != len(set(operation.targets)):
        return "it names a target twice"
    if (operation.experience is None) != (operation.kind == "remove"):
        return f"{operation.kind} {'needs' if operation.experience is None else 'takes no'} experience"
    one = (count == 1, "one target")
    shapes = {"add": (count == 0, "no target"), "update": one, "remove": one}
    shapes["merge"] = (count >= 2, "two or more targets")
    if operation.kind not in shapes:
        return f"there is no operation {operation.kind!r}"
    fits, wanted = shapes[operation.kind]
    return None if fits else f"{operation.kind} takes {wanted}, not {count}"


def _carried_out(library: Library, operations: Sequence[Operation], epoch: int) -> Revision:
    gone = {target for operation in operations for target in operation.targets}
    kept = [e for e in library.experiences if e.id not in gone]
    new = [operation.experience for operation in operations if operation.experience is not None]
    return Revision(epoch=epoch, library=_successor(library, [*kept, *new]), applied=tuple(operations))


def _successor(library: Library, experiences: Iterable[Experience]) -> Library:
    new = replace(of(experiences, library.lineage), looks=library.looks, effects=library.effects)
    return new if new.hash == library.hash else replace(new, lineage=(*library.lineage, library.hash))


def _evidence(experience: Experience) -> tuple[float, int, float, int, str, str]:
    reward, support = experience.reward, experience.support
    return (
        reward.value, support.groups, reward.relative_rank, support.rollouts,
        experience.created_at, experience.summary32,
    )  # fmt: skip


def _common(a: Library, b: Library) -> Counter[str]:
    return Counter(map(visible_stamp, a.experiences)) & Counter(map(visible_stamp, b.experiences))


def _without(library: Library, kept: Counter[str]) -> list[Experience]:
    left, rest = kept.copy(), []
    for experience in library.experiences:
        content_stamp = visible_stamp(experience)
        if left[content_stamp]:
            left[content_stamp] -= 1
        else:
            rest.append(experience)
    return rest


def _ancestors(id_: str, parents: Mapping[str, tuple[str, ...]]) -> set[str]:
    found, open_ids = set[str](), [id_]
    while open_ids:
        current = open_ids.pop()
        if current not in found:
            found.add(current)
            open_ids += parents.get(current, ())
    return found


def _require(path: Path, schema: str, data: object, place: str = "") -> None:
    for violation in violations(schema, data):
        where = place + violation.pointer or "/"
        raise StoreError(f"{path}: {where}: {violation.message}; it holds {short(data)}")
