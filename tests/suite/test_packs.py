"""Prompt packs: stamped, refused by name when they changed, found by domain (decision 13)."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.core.errors import PackError
from pytest_tfgrpo.suite import packs as packs_module
from pytest_tfgrpo.suite.packs import (
    load_pack,
    load_packs,
    pack_folders,
    pack_for,
    rewritten,
    write_pack,
    write_pack_stamp,
)

FILES = {"system.md": "Solve it.\n", "one.md": "First.\n", "two.md": "Second.\n"}


def write(folder: Path, files=FILES, stamped=True, **changes) -> Path:
    """Write a pack into `folder`; a change to None leaves the key out."""
    folder.mkdir(parents=True, exist_ok=True)
    manifest = {"id": folder.name, "domain": "text", "system": "system.md", "inject": ["one.md", "two.md"]}
    manifest = {key: value for key, value in {**manifest, **changes}.items() if value is not None}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1))
    for name, text in files.items():
        (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    if stamped:
        write_pack_stamp(folder)
    return folder


def stamp_of_pack(folder: Path) -> str:
    write_pack_stamp(folder)
    return str(json.loads((folder / "manifest.json").read_text())["stamp"])


def refusal(folder: Path) -> str:
    with pytest.raises(PackError) as error:
        load_packs(folder)
    return str(error.value)


def test_a_stamped_pack_is_loaded_under_its_domain(tmp_path):
    policy = {"retrieval": "top", "min_reward": 0.5, "weights": [1, 0], "place": "user"}
    write(tmp_path / "text-pack", experience_slots=3, policy=policy)
    (pack,) = load_packs(tmp_path).values()
    assert load_packs(tmp_path) == {"text": pack}
    assert pack.stamp == stamp_of_pack(tmp_path / "text-pack")
    assert (pack.id, pack.domain, pack.system, pack.inject) == (
        "text-pack", "text", "Solve it.\n", ("First.\n", "Second.\n"),
    )  # fmt: skip
    assert (pack.experience_slots, pack.retrieval, pack.min_reward, pack.weights, pack.place) == (
        3, "top", 0.5, (1.0, 0.0), "user",
    )  # fmt: skip


def test_whole_numbers_in_a_policy_have_the_stamp_of_the_same_with_a_point(tmp_path):
    whole, point = (
        stamp_of_pack(write(tmp_path / name / "a", policy={"weights": weights, "min_reward": least}))
        for name, weights, least in (("x", [1, 0], 1), ("y", [1.0, 0.0], 1.0))
    )
    assert whole == point


def test_what_a_manifest_leaves_out_takes_its_default(tmp_path):
    write(tmp_path / "a", inject=None)
    (pack,) = load_packs(tmp_path).values()
    assert (pack.inject, pack.experience_slots, pack.weights) == ((), 8, (0.7, 0.3))
    assert (pack.retrieval, pack.min_reward, pack.place) == ("relevant", 0.0, "system")


def test_stamping_a_second_time_changes_nothing(tmp_path):
    folder = write(tmp_path / "a", stamped=False)
    assert write_pack_stamp(folder)
    before = (folder / "manifest.json").read_bytes()
    assert not write_pack_stamp(folder)
    assert (folder / "manifest.json").read_bytes() == before
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        "one.md",
        "system.md",
        "two.md",
    ]


def test_a_stamp_depends_on_neither_the_order_of_keys_nor_file_names_nor_line_ends(tmp_path):
    stamp = stamp_of_pack(write(tmp_path / "1" / "a"))
    crlf = {name: text.replace("\n", "\r\n") for name, text in FILES.items()}
    assert stamp_of_pack(write(tmp_path / "2" / "a", crlf)) == stamp
    renamed = {"s.txt": FILES["system.md"], "1.txt": FILES["one.md"], "2.txt": FILES["two.md"]}
    folder = write(tmp_path / "3" / "a", renamed, system="s.txt", inject=["1.txt", "2.txt"])
    assert stamp_of_pack(folder) == stamp
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(dict(reversed(manifest.items()))))
    assert stamp_of_pack(folder) == stamp
    assert stamp_of_pack(write(tmp_path / "4" / "a", experience_slots=8, policy={"min_reward": 0})) == stamp
    assert stamp_of_pack(write(tmp_path / "5" / "a", policy={"place": "system"})) == stamp


@pytest.mark.parametrize(
    "change",
    [
        {"files": FILES | {"system.md": "Solve it!\n"}},
        {"files": FILES | {"two.md": ""}},
        {"inject": ["two.md", "one.md"]},
        {"inject": ["one.md"]},
        {"system": "one.md", "inject": ["system.md", "two.md"]},
        {"domain": "numbers"},
        {"experience_slots": 7},
        {"policy": {"retrieval": "top"}},
        {"policy": {"min_reward": 0.1}},
        {"policy": {"weights": [0.3, 0.7]}},
        {"policy": {"place": "user"}},
    ],
)
def test_a_stamp_follows_every_change_of_content(tmp_path, change):
    assert stamp_of_pack(write(tmp_path / "1" / "a")) != stamp_of_pack(write(tmp_path / "2" / "a", **change))


section = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)


@st.composite
def four(draw):
    """Draw two pairs of texts, which are often equal but for their line ends, or of the same letters."""
    a, b = f"{draw(section)}\n", draw(section)
    at = draw(st.integers(0, len(a + b)))
    other = st.tuples(section, section) | st.just(((a + b)[:at], (a + b)[at:]))
    return a, b, *draw(other | st.just((a.replace("\n", "\r\n"), f"\ufeff{b}")))


@reaches("equal", "of the same letters", "others")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(four())
def test_sections_do_not_run_into_each_other(tmp_path, drawn):
    a, b, c, d = drawn

    def stamp(one, two):
        return stamp_of_pack(write(tmp_path / "a", FILES | {"one.md": one, "two.md": two}, stamped=False))

    def plain(text):
        return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")

    equal = (plain(a), plain(b)) == (plain(c), plain(d))
    reached("equal" if equal else "of the same letters" if a + b == c + d else "others")
    assert (stamp(a, b) == stamp(c, d)) == equal


def test_an_unstamped_pack_is_refused_by_name(tmp_path):
    write(tmp_path / "a", stamped=False)
    assert (
        refusal(tmp_path)
        == f"{tmp_path}/a/manifest.json is not stamped; review the pack and run 'tfgrpo stamp'"
    )
    write(tmp_path / "a", stamped=False, stamp="")
    assert "is not stamped" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("files", "changes", "named"),
    [
        ({"two.md": "Other.\n"}, {}, ["two.md"]),
        ({"two.md": "Other.\n", "system.md": ""}, {}, ["system.md", "two.md"]),
        ({}, {"experience_slots": 3}, ["manifest.json"]),
        ({}, {"domain": "other"}, ["manifest.json"]),
    ],
)
def test_a_changed_file_is_refused_by_name(tmp_path, files, changes, named):
    folder = write(tmp_path / "a")
    stamped = json.loads((folder / "manifest.json").read_text())
    write(folder, FILES | files, stamped=False, **{**stamped, **changes})
    names = ", ".join(str(folder / name) for name in named)
    assert (
        refusal(tmp_path)
        == f"{names} changed since the pack was stamped; review the change and run 'tfgrpo stamp'"
    )
    assert write_pack_stamp(folder)
    assert len(load_packs(tmp_path)) == 1


def test_a_stamp_of_another_pack_does_not_fit(tmp_path):
    other = stamp_of_pack(write(tmp_path / "1" / "a"))
    write(tmp_path / "2" / "b", stamped=False, stamp=other)
    assert "changed since the pack was stamped" in refusal(tmp_path / "2")


def test_two_packs_for_a_domain_are_refused_naming_both(tmp_path):
    write(tmp_path / "a")
    write(tmp_path / "b")
    message = refusal(tmp_path)
    assert (
        f"{tmp_path}/b/manifest.json and {tmp_path}/a/manifest.json both serve the domain 'text'" in message
    )


@pytest.mark.parametrize(
    ("files", "changes", "message"),
    [
        (FILES, {"id": "other"}, "a/manifest.json:2: #/id: 'other' must be the folder's name, 'a'"),
        (FILES, {"id": None}, "a/manifest.json:1: #: missing key 'id'"),
        (FILES, {"domain": "a/b"}, "a/manifest.json:3: #/domain: 'a/b' does not match"),
        (FILES, {"system": None}, "a/manifest.json:1: #: missing key 'system'"),
        (FILES, {"sytem": "x"}, "a/manifest.json:9: #/sytem: unknown key 'sytem'; did you mean 'system'?"),
        (
            FILES,
            {"experience_slots": -1},
            "a/manifest.json:9: #/experience_slots: -1 is less than the minimum",
        ),
        (
            FILES,
            {"policy": {"retrieval": "best"}},
            "a/manifest.json:10: #/policy/retrieval: 'best' is not one of",
        ),
        (FILES, {"policy": {"weights": [1]}}, "#/policy/weights: [1] is too short"),
        (FILES, {"system": "../system.md"}, "a/manifest.json: '../system.md' must be a plain relative path"),
        (FILES, {"inject": ["/etc/passwd"]}, "a/manifest.json: '/etc/passwd' must be a plain relative path"),
        (FILES, {"inject": ["none.md"]}, "a/manifest.json: 'none.md' cannot be read: No such file"),
        (FILES, {"inject": ["link.md"]}, "a/manifest.json: 'link.md' is a link that leaves its folder"),
        (FILES | {"one.md": b"\n\xff"}, {}, "a/one.md:2: not UTF-8: byte 0xff"),
        (FILES | {"manifest.json": b"{"}, {}, "a/manifest.json:1: #: not JSON"),
        (FILES | {"manifest.json": b'{"id": 1, "id": 2}'}, {}, "a/manifest.json:1: #/id: duplicate key 'id'"),
        (FILES | {"manifest.json": b"[]"}, {}, "a/manifest.json:1: #: [] is not of type object"),
    ],
)
def test_a_bad_pack_is_refused_with_its_file(tmp_path, files, changes, message):
    (tmp_path / "outside.md").write_text("x")
    folder = write(tmp_path / "packs" / "a", files, stamped=False, **changes)
    (folder / "link.md").symlink_to(tmp_path / "outside.md")
    for use in (
        load_packs,
        lambda packs: write_pack_stamp(packs / "a"),
    ):
        with pytest.raises(PackError, match=re.escape(message)):
            use(tmp_path / "packs")


def test_a_folder_without_a_manifest_is_refused_and_hidden_ones_are_not_looked_at(tmp_path):
    write(tmp_path / "a")
    for name in (".git", "__pycache__"):
        (tmp_path / name).mkdir()
    (tmp_path / "README.md").write_text("x")
    assert pack_folders(tmp_path) == [tmp_path / "a"]
    (tmp_path / "b").mkdir()
    assert f"{tmp_path}/b/manifest.json:1: #: cannot be read: No such file" in refusal(tmp_path)


def test_a_manifest_that_cannot_be_written_is_told_and_stays_whole(tmp_path, monkeypatch):
    folder = write(tmp_path / "a", stamped=False)
    before = (folder / "manifest.json").read_bytes()

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(packs_module.Path, "replace", full)
    with pytest.raises(PackError, match=r"manifest\.json cannot be written: No space left on device"):
        write_pack_stamp(folder)
    assert (folder / "manifest.json").read_bytes() == before
    assert not [path for path in folder.iterdir() if path.name.startswith(".")]


def test_a_pack_is_known_by_its_folders_name_however_the_folder_is_named(tmp_path, monkeypatch):
    pack = load_pack(write(tmp_path / "text"))
    monkeypatch.chdir(tmp_path / "text")
    assert load_pack(Path()) == pack


def test_a_domain_gets_its_own_pack_else_that_of_every_domain_else_the_packaged_one(tmp_path):
    assert load_packs(tmp_path / "none") == {}
    write(tmp_path / "a", domain="text")
    packs = load_packs(tmp_path)
    assert pack_for(packs, "text").id == "a"
    assert (pack_for(packs, "dates").id, pack_for(packs, "dates").domain) == ("default", "*")
    write(tmp_path / "b", domain="*")
    packs = load_packs(tmp_path)
    assert (pack_for(packs, "text").id, pack_for(packs, "dates").id) == ("a", "b")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"inject": None},
        {"domain": "*", "experience_slots": 0, "version": "v1"},
        {"policy": {"place": "user"}},
    ],
)
def test_a_pack_that_is_written_loads_as_it_was(tmp_path, changes):
    pack = load_pack(write(tmp_path / "a" / "text-pack", **changes))
    assert load_pack(write_pack(tmp_path / "b", pack)) == pack
    assert (pack.version, pack.place) == (
        changes.get("version", ""),
        changes.get("policy", {}).get("place", "system"),
    )


def test_a_rewritten_pack_has_a_stamp_of_its_own_and_loads(tmp_path):
    pack = load_pack(write(tmp_path / "a" / "text-pack", version="v1", experience_slots=3))
    new = rewritten(pack, "\ufeffAnswer {experiences}\r\nin one word.\r")
    assert (new.system, new.version) == ("Answer {experiences}\nin one word.\n", "")
    assert (new.id, new.domain, new.inject, new.experience_slots) == ("text-pack", "text", pack.inject, 3)
    assert new.stamp != pack.stamp
    assert rewritten(pack, pack.system).stamp == pack.stamp
    folder = write_pack(tmp_path / "b", new)
    assert load_packs(tmp_path / "b") == {"text": new}
    write_pack(tmp_path / "b", pack)
    assert load_pack(folder) == pack


def test_a_text_that_no_file_holds_makes_no_pack(tmp_path):
    pack = load_pack(write(tmp_path / "text-pack"))
    with pytest.raises(PackError, match="half a surrogate pair at character 2"):
        rewritten(pack, "ab\ud800")
    assert rewritten(pack, "x" * 1_000_000).system == "x" * 1_000_000
    with pytest.raises(PackError, match="has 1000001 bytes"):
        rewritten(pack, "x" * 1_000_001)
    (tmp_path / "file").write_text("")
    with pytest.raises(PackError, match="cannot be written"):
        write_pack(tmp_path / "file", pack)
