"""The prompts of the optimizer `llm`: a stamped prompt pack, the packaged one or the project's own."""

from __future__ import annotations

from pathlib import Path

from pytest_tfgrpo.core.errors import PackError
from pytest_tfgrpo.core.files import read_plain
from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.llm.templates import places
from pytest_tfgrpo.suite.packs import MANIFEST, load_pack

DOMAIN = "tfgrpo.optimizer"
"""Reserved: no scenario is of this domain."""
FOLDER = "optimizer"
PLACES = {
    "system": frozenset[str](),
    "summary": frozenset({"task", "truth", "attempt"}),
    "truth-known": frozenset({"expected"}),
    "truth-estimated": frozenset({"estimator"}),
    "critique": frozenset({"library", "task", "truth", "attempts", "max_operations", "max_words"}),
    "consolidation": frozenset({"library", "proposals", "max_operations", "max_words"}),
    "repair": frozenset({"problems", "max_words"}),
}
"""The sections, each a file ``<section>.md``, and the places that each must have."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TeacherPrompts:
    """The sections of the pack."""

    stamp: str
    version: str
    """What its author calls it."""
    system: str
    summary: str
    truth_known: str
    truth_estimated: str
    critique: str
    consolidation: str
    repair: str


def load_prompts(packs: Path | None) -> TeacherPrompts:
    """Return the prompts in the folder ``optimizer`` of `packs`, or the packaged ones.

    Raises PackError naming the file that is malformed, changed, missing, or lacks a place.
    """
    own = packs / FOLDER if packs is not None else None
    folder = own if own is not None and own.is_dir() else Path(__file__).parent / "prompts" / FOLDER
    pack = load_pack(folder)
    if pack.domain != DOMAIN:
        raise PackError(
            f"{folder / MANIFEST} serves the domain {pack.domain!r}; a folder {FOLDER!r} holds the prompts "
            f"of the optimizer llm: set its domain to {DOMAIN!r}, or rename the folder"
        )
    manifest = load_json(read_plain(folder / MANIFEST))
    files = [manifest["system"], *manifest.get("inject", [])]
    texts = dict(zip(files, (pack.system, *pack.inject), strict=True))
    sections = {name: _section(folder, name, texts) for name in PLACES}
    fields = {name.replace("-", "_"): text for name, text in sections.items()}
    return TeacherPrompts(stamp=pack.stamp, version=pack.version, **fields)


def _section(folder: Path, name: str, texts: dict[str, str]) -> str:
    file = f"{name}.md"
    if file not in texts:
        where = "system" if name == "system" else "inject"
        raise PackError(f"{folder / file} is missing; name it in {folder / MANIFEST} under {where!r}")
    found = places(texts[file])
    for place in sorted(PLACES[name] - found):
        raise PackError(f"{folder / file} lacks the placeholder {{{{{place}}}}}")
    for place in sorted(found - PLACES[name]):
        raise PackError(f"{folder / file}: unknown placeholder {{{{{place}}}}}")
    return texts[file].strip()
