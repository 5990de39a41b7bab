"""Prompt packs: stamped prompt sources for a domain (decision 13)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pytest_tfgrpo.core.errors import PackError
from pytest_tfgrpo.core.files import write_atomic
from pytest_tfgrpo.core.scenarios import PromptPack
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.wire.schema import pointer, violations
from pytest_tfgrpo.core.wire.stamp import stamp, stamp_bytes
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.sandbox.paths import confined
from pytest_tfgrpo.suite.documents.document import Refused, read_text
from pytest_tfgrpo.suite.documents.json_text import parse_json

MANIFEST = "manifest.json"
MAX_BYTES = 1_000_000
ANY_DOMAIN = "*"


class Sources(NamedTuple):
    """A manifest and the texts that it names."""

    manifest: Mapping[str, Json]
    texts: Mapping[str, str]
    """By file name; line ends are normalised."""

    def stamp(self) -> str:
        """Return the stamp of the pack: source texts in section order, slots, policy, id and domain."""
        content = {
            "id": self.manifest["id"],
            "domain": self.manifest["domain"],
            "sections": [self.texts[name] for name in self.names()],
            "experience_slots": self.slots(),
            "policy": self.policy(),
        }
        return stamp(content)

    def names(self) -> list[str]:
        """Return the files in section order: the system text, then the injections."""
        return [self.manifest["system"], *self.manifest.get("inject", [])]

    def slots(self) -> int:
        """Return how many experiences a prompt carries at most."""
        return int(self.manifest.get("experience_slots", 8))

    def policy(self) -> dict[str, Json]:
        """Return the retrieval policy with its defaults filled in."""
        policy: dict[str, Json] = {"retrieval": "relevant", "min_reward": 0.0, "weights": [0.7, 0.3]}
        policy |= self.manifest.get("policy", {})
        if policy.get("place") == "system":
            del policy["place"]  # the default is no part of a stamp
        return policy | {
            "min_reward": float(policy["min_reward"]),
            "weights": [float(weight) for weight in policy["weights"]],
        }

    def digests(self) -> dict[str, str]:
        """Return the sha256 of each source, to find which one changed."""
        return {name: stamp_bytes(text.encode()) for name, text in self.texts.items()}


def load_packs(folder: Path) -> dict[str, PromptPack]:
    """Return the packs in `folder` by domain; none when there is no such folder.

    Raises PackError naming the file that is malformed, unstamped or changed, and for two packs of a domain.
    """
    packs: dict[str, PromptPack] = {}
    for place in pack_folders(folder):
        pack = load_pack(place)
        if pack.domain in packs:
            other = folder / packs[pack.domain].id / MANIFEST
            raise PackError(
                f"{place / MANIFEST} and {other} both serve the domain {pack.domain!r}; remove one"
            )
        packs[pack.domain] = pack
    return packs


def pack_folders(folder: Path) -> list[Path]:
    """Return the folders of the packs in `folder`, sorted; hidden ones and ``__pycache__`` are no packs."""
    if not folder.is_dir():
        return []
    return sorted(place for place in folder.iterdir() if place.is_dir() and place.name[0] not in "._")


def load_pack(folder: Path) -> PromptPack:
    """Return the pack in `folder`; raises PackError naming the file that is wrong."""
    sources = _read(folder)
    manifest, texts = sources.manifest, sources.texts
    recorded, actual = manifest.get("stamp", ""), sources.stamp()
    if not recorded:
        raise PackError(f"{folder / MANIFEST} is not stamped; review the pack and run 'tfgrpo stamp'")
    if recorded != actual:
        raise PackError(_changed(folder, sources))
    policy = sources.policy()
    system, *inject = (texts[name] for name in sources.names())
    return PromptPack(
        id=manifest["id"],
        domain=manifest["domain"],
        stamp=actual,
        system=system,
        inject=tuple(inject),
        experience_slots=sources.slots(),
        retrieval=policy["retrieval"],
        min_reward=policy["min_reward"],
        weights=(policy["weights"][0], policy["weights"][1]),
        place=policy.get("place", "system"),
        version=manifest.get("version", ""),
    )


def rewritten(pack: PromptPack, system: str) -> PromptPack:
    """Return `pack` with another system text, under the stamp that it has then; all else stays.

    Raises PackError where the text cannot be that of a pack.
    """
    text = _with_plain_ends(system.removeprefix("\ufeff"))
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise PackError(f"the text holds half a surrogate pair at character {error.start}") from None
    if size > MAX_BYTES:
        raise PackError(f"the text has {size} bytes; that of a pack has at most {MAX_BYTES}")
    changed = replace(pack, system=text, version="")
    return replace(changed, stamp=_sources_of(changed).stamp())


def write_pack(folder: Path, pack: PromptPack) -> Path:
    """Write a stamped pack into a folder of its id in `folder`, and return that; raises PackError."""
    sources, place = _sources_of(pack), folder / pack.id
    written = {**sources.manifest, "stamp": pack.stamp, "sources": sources.digests()}
    files = {**sources.texts, MANIFEST: json.dumps(written, indent=2, ensure_ascii=False) + "\n"}
    try:
        place.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_atomic(place / name, [text.encode()])
    except OSError as error:
        raise PackError(f"{place} cannot be written: {error.strerror}") from error
    return place


def _sources_of(pack: PromptPack) -> Sources:
    """Return manifest and texts of a pack, in files that are named by their places."""
    inject = {f"inject-{n}.md": text for n, text in enumerate(pack.inject, 1)}
    manifest: dict[str, Json] = {
        "id": pack.id,
        "domain": pack.domain,
        **({"version": pack.version} if pack.version else {}),
        "system": "system.md",
        "inject": list(inject),
        "experience_slots": pack.experience_slots,
        "policy": {
            "retrieval": pack.retrieval,
            "min_reward": pack.min_reward,
            "weights": list(pack.weights),
            **({} if pack.place == "system" else {"place": pack.place}),
        },
    }
    return Sources(manifest, {"system.md": pack.system, **inject})


def _changed(folder: Path, sources: Sources) -> str:
    recorded = sources.manifest.get("sources", {})
    changed = [name for name, digest in sources.digests().items() if recorded.get(name) != digest]
    files = ", ".join(str(folder / name) for name in changed or [MANIFEST])
    return f"{files} changed since the pack was stamped; review the change and run 'tfgrpo stamp'"


def write_pack_stamp(folder: Path) -> bool:
    """Write the pack's stamp into its manifest, and return whether that changed the file.

    Raises PackError when the pack is malformed or the manifest cannot be written.
    """
    sources = _read(folder)
    path, written = folder / MANIFEST, {"stamp": sources.stamp(), "sources": sources.digests()}
    if all(sources.manifest.get(key) == value for key, value in written.items()):
        return False
    text = json.dumps({**sources.manifest, **written}, indent=2, ensure_ascii=False) + "\n"
    try:
        write_atomic(path, [text.encode()])
    except OSError as error:
        raise PackError(f"{path} cannot be written: {error.strerror}") from error
    return True


def _read(folder: Path) -> Sources:
    path = folder / MANIFEST
    try:
        document = parse_json(read_text(path, MAX_BYTES))
    except Refused as error:
        raise PackError(f"{path}:{error.problem.line}: #{pointer(error.problem.path)}: {error}") from None
    manifest = document.value
    if found := violations("pack", manifest):
        lines = [f"{path}:{document.line(v.path)}: #{v.pointer}: {v.message}" for v in found]
        raise PackError("\n".join(lines))
    if manifest["id"] != folder.absolute().name:
        line = document.line(("id",))
        raise PackError(
            f"{path}:{line}: #/id: {short(manifest['id'])} must be the folder's name, "
            f"{folder.absolute().name!r}"
        )
    names = dict.fromkeys([manifest["system"], *manifest.get("inject", [])])
    return Sources(manifest, {name: _source(folder, name) for name in names})


def _source(folder: Path, name: str) -> str:
    try:
        text = read_text(confined(folder, name, MAX_BYTES), MAX_BYTES)
    except Refused as error:
        raise PackError(f"{folder / name}:{error.problem.line}: {error}") from None
    except ValueError as error:
        raise PackError(f"{folder / MANIFEST}: {error}") from None
    return _with_plain_ends(text)


def _with_plain_ends(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def packs_in_use(packs: Mapping[str, PromptPack], domains: Iterable[str]) -> tuple[PromptPack, ...]:
    """Return each pack that serves one of `domains`, once."""
    found = {pack.domain: pack for pack in (pack_for(packs, domain) for domain in domains)}
    return tuple(found[domain] for domain in sorted(found))


@cache
def builtin_pack() -> PromptPack:
    """Return the packaged pack, which serves domains without one of their own."""
    return load_pack(Path(__file__).parent / "default")


def pack_for(packs: Mapping[str, PromptPack], domain: str) -> PromptPack:
    """Return the pack of `domain`, else that of every domain (``*``), else the packaged one."""
    return packs.get(domain) or packs.get(ANY_DOMAIN) or builtin_pack()
