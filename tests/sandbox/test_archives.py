"""Archives are the same bytes for the same tree, and hostile ones are refused."""

import gzip
import io
import os
import random
import tarfile
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reached import reached, reaches

from pytest_tfgrpo.sandbox.archives import (
    ArchiveEntry,
    ArchiveProblem,
    lay,
    pack,
    read_archive,
    read_entries,
    unpack,
)

TREE = (
    ArchiveEntry(name="shop/cart.py", data=b"total = 1\n"),
    ArchiveEntry(name="run", data=b"#!/bin/sh\n", executable=True),
    ArchiveEntry(name="shop/latest", link="../run"),
    ArchiveEntry(name="empty"),
    ArchiveEntry(name="a" * 120 + "/" + "b" * 200, data=bytes(range(256)) * 9),
    ArchiveEntry(name="ü ñ\n\x1b[31m\\.txt", data=b"odd"),
    ArchiveEntry(name="latin-\udce9", data=b"no UTF-8"),
    ArchiveEntry(name="deep/er/link", link="../" + "c" * 130),
)


def made(*members: tarfile.TarInfo, form: int = tarfile.GNU_FORMAT, data: bytes = b"") -> io.BytesIO:
    """Return an archive as another program makes it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz", format=form) as archive:
        for member in members:
            member.size = len(data) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(data))
    out.seek(0)
    return out


def member(name: str, kind: bytes = tarfile.REGTYPE, target: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info


def read(data: bytes | io.BytesIO, **limits: int) -> list[ArchiveEntry]:
    return list(read_entries(data if isinstance(data, io.BytesIO) else io.BytesIO(data), **limits))


def test_a_tree_is_read_as_it_was_packed():
    assert read(pack(TREE)) == sorted(TREE, key=lambda e: e.name.encode("utf-8", "surrogateescape"))


def test_order_does_not_matter():
    assert pack(TREE) == pack(TREE[::-1]) == pack(random.sample(TREE, len(TREE)))


def test_an_archive_holds_no_time_and_no_owner():
    with tarfile.open(fileobj=io.BytesIO(pack(TREE))) as archive:
        assert {(m.mtime, m.uid, m.gid, m.uname, m.gname) for m in archive} == {(0, 0, 0, "", "")}
    assert pack(TREE)[:10] == b"\x1f\x8b\x08\0\0\0\0\0\0\xff"


def test_another_program_reads_the_same(tmp_path):
    with tarfile.open(fileobj=io.BytesIO(pack(TREE))) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive if m.isreg()}
        links = {m.name: m.linkname for m in archive if m.issym()}
        assert archive.getmember("run").mode == 0o755
    assert files == {e.name: e.data for e in TREE if e.link is None}
    assert links == {e.name: e.link for e in TREE if e.link is not None}


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_an_archive_of_another_program_is_read(form):
    name = "x" * 60 + "/" + "y" * 90
    folder = member("./", tarfile.DIRTYPE, mode=0o755)
    found = read(made(folder, member("./a", mode=0o777), member("./" + name), form=form, data=b"1"))
    assert found == [
        ArchiveEntry(name="a", data=b"1", executable=True),
        ArchiveEntry(name=name, data=b"1"),
    ]


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd",
        "../a",
        "a/../../b",
        "a/..",
        "a//b",
        ".",
        "..",
        "a/./b",
        ".git/config",
        "x/.GIT/a",
        ".git",
    ],
)
def test_a_name_that_leaves_the_tree_is_refused(name):
    with pytest.raises(ArchiveProblem, match=r"plain relative path|repository"):
        pack([ArchiveEntry(name=name)])
    with pytest.raises(ArchiveProblem, match=r"plain relative path|repository"):
        read(made(member(name)))


@pytest.mark.parametrize("name", ["a" * 256, "/".join("a" * 101), "a/" * 600 + "b", "\ud800"])
def test_a_name_that_no_file_can_have_is_refused(name):
    with pytest.raises(ArchiveProblem, match=r"too long or too deep|not a name for a file"):
        pack([ArchiveEntry(name=name)])


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("a", "/etc"),
        ("a", ".."),
        ("a", "../b"),
        ("p/a", "../.."),
        ("p/a", "d/../../.."),
        ("p/a", "d/.."),  # where d is a link, this leads somewhere else than it seems
        ("a", ""),
        ("a", ".git/hooks"),
        ("a", "x\0y"),
    ],
)
def test_a_link_that_leaves_the_tree_is_refused(name, target):
    with pytest.raises(ArchiveProblem, match="leads out of the tree"):
        pack([ArchiveEntry(name=name, link=target)])


def test_a_link_through_links_cannot_leave_the_tree(tmp_path):
    links = {"p/d": ".", "p/q/up": "../d", "p/q/r/l": "../up/d", "loop": "loop", "none": "p/no/thing"}
    unpack_to(tmp_path / "tree", [ArchiveEntry(name=name, link=target) for name, target in links.items()])
    for name in links:
        assert os.path.realpath(tmp_path / "tree" / name).startswith(str(tmp_path / "tree"))


parts = st.sampled_from(["a", "b", "c", "..", "."])
names = st.lists(st.sampled_from("abc"), min_size=1, max_size=3).map("/".join)
links = st.dictionaries(names, st.lists(parts, min_size=1, max_size=4).map("/".join), max_size=6)


@given(links, links)
@settings(max_examples=60, deadline=None)
def test_no_accepted_links_lead_out_together(tmp_path_factory, below, above):
    folder = tmp_path_factory.mktemp("tree")
    for layer in (below, above):
        kept = {}
        for name, target in layer.items():
            try:
                pack([ArchiveEntry(name=n, link=t) for n, t in (kept | {name: target}).items()])
            except ArchiveProblem:
                continue
            kept[name] = target
        lay([ArchiveEntry(name=name, link=target) for name, target in kept.items()], folder)
    for top, folders, files in os.walk(folder):
        for name in (*folders, *files):
            assert os.path.realpath(f"{top}/{name}").startswith(str(folder))


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (tarfile.LNKTYPE, "a hard link"),
        (tarfile.CHRTYPE, "a device"),
        (tarfile.BLKTYPE, "a device"),
        (tarfile.FIFOTYPE, "a pipe"),
        (tarfile.GNUTYPE_SPARSE, "a sparse file"),
        (b"Z", "of a kind that is not known"),
    ],
)
def test_what_is_neither_file_nor_link_is_refused(kind, said):
    with pytest.raises(ArchiveProblem, match=said):
        read(made(member("a", kind, "b")))


@pytest.mark.parametrize(
    "two",
    [
        ("a", "a"),
        ("a", "a/b"),
        ("a/b", "a"),
        ("a/b/c", "a/b"),
    ],
)
def test_two_entries_in_one_place_are_refused(two):
    with pytest.raises(ArchiveProblem, match=r"twice|which is not a folder"):
        pack([ArchiveEntry(name=name) for name in two])
    with pytest.raises(ArchiveProblem, match=r"twice|which is not a folder"):
        read(made(*map(member, two)))


@pytest.mark.parametrize("header", [{"GNU.sparse.major": "1"}, {"size": "9"}])
def test_a_file_with_holes_or_of_another_size_is_refused(header):
    one = member("a")
    one.pax_headers = header
    with pytest.raises(ArchiveProblem, match="a sparse file, or a file that is too large"):
        read(made(one, form=tarfile.PAX_FORMAT, data=b"x"))


@pytest.mark.parametrize(
    "record",
    [
        b"11 path=ab\n",
        b"12 path=ab\n",
        b"10 path=ab\n",
        b"path=ab\n",
        b"0 path=ab\n",
        b"11 path=abX",
        b"9" * 5000 + b" a=\n",
    ],
    ids=["right", "longer", "shorter", "none", "zero", "no end", "huge"],
)
def test_an_extended_header_says_its_own_length(record):
    info = tarfile.TarInfo("x")
    info.type, info.size = tarfile.XHDTYPE, len(record)
    block = info.tobuf(tarfile.USTAR_FORMAT) + record.ljust(-(-len(record) // 512) * 512, b"\0")
    data = gzip.compress(block + member("a").tobuf(tarfile.USTAR_FORMAT) + bytes(1024))
    if record == b"11 path=ab\n":
        assert [entry.name for entry in read(data)] == ["ab"]
        return
    with pytest.raises(ArchiveProblem, match="an extended header is malformed"):
        read(data)


def test_a_file_below_a_link_is_refused():
    with pytest.raises(ArchiveProblem, match="'a/b' lies below 'a', which is not a folder"):
        read(made(member("a", tarfile.SYMTYPE, "c"), member("a/b")))


def test_names_that_differ_in_case_are_two_files(tmp_path):
    unpack_to(tmp_path / "tree", [ArchiveEntry(name="A", data=b"1"), ArchiveEntry(name="a", data=b"2")])
    assert (tmp_path / "tree" / "A").read_bytes() == b"1"


def test_a_bomb_is_refused_before_it_is_unpacked():
    with pytest.raises(ArchiveProblem, match="more than 1000 bytes"):
        read(made(member("a"), data=bytes(2000)), max_bytes=1000)
    with pytest.raises(ArchiveProblem, match="more than 2 files"):
        read(pack([ArchiveEntry(name=str(i)) for i in range(3)]), max_files=2)
    with pytest.raises(ArchiveProblem, match="more than 2 folders"):
        read(pack([ArchiveEntry(name="a/b/c/d")]), max_files=2)


def test_a_bomb_of_headers_or_of_what_follows_is_refused():
    folders = made(*(member(f"d{i}", tarfile.DIRTYPE) for i in range(400)))
    with pytest.raises(ArchiveProblem, match="far larger than its files"):
        read(folders, max_bytes=0, max_files=1)
    with pytest.raises(ArchiveProblem, match="a name in it is too long"):
        read(made(member("a/" * 40_000)))
    plain = gzip.decompress(pack(TREE))
    with pytest.raises(ArchiveProblem, match="more behind its end"):
        read(gzip.compress(plain + bytes(10_000_000)), max_bytes=10_000, max_files=10)
    with pytest.raises(ArchiveProblem, match="more behind its end"):
        read(gzip.compress(plain + plain))


@pytest.mark.parametrize(
    "damage", [b"", b"not gzip", pack(TREE)[:-9], pack(TREE)[:60], gzip.compress(b"x" * 512, mtime=0)]
)
def test_a_damaged_archive_is_refused(damage):
    with pytest.raises(ArchiveProblem):
        read(damage)


@reaches("entries", "refused")
@settings(max_examples=100)
@given(st.integers(0, 2**32), st.sampled_from(["outside", "inside", "contents"]))
def test_any_damage_gives_an_error_of_ours_or_entries_that_stay(seed, where):
    rng = random.Random(seed)
    data = bytearray(pack(TREE) if where == "outside" else gzip.decompress(pack(TREE)))
    headers = [n for n in range(0, len(data), 512) if data[n + 257 : n + 262] == b"ustar"]
    behind = [n for n in range(len(data)) if where == "inside" or not any(h <= n < h + 512 for h in headers)]
    for _ in range(rng.randint(1, 5)):
        data[rng.choice(behind)] = rng.randrange(256)
    packed = bytes(data) if where == "outside" else gzip.compress(data)
    try:
        for entry in read(packed, max_bytes=1_000_000, max_files=100):
            reached("entries")
            assert ".." not in entry.name.split("/")
            assert not entry.name.startswith("/")
    except ArchiveProblem:
        reached("refused")


def test_a_wrong_checksum_of_the_whole_is_seen():
    data = bytearray(pack(TREE))
    data[-5] ^= 1
    with pytest.raises(ArchiveProblem, match="damaged"):
        read(bytes(data))


def test_modes_are_those_of_ordinary_files(tmp_path):
    (tmp_path / "a.tar.gz").write_bytes(
        made(member("a", mode=0o7777), member("b", mode=0o000), data=b"").getvalue()
    )
    (tmp_path / "tree").mkdir()
    old = os.umask(0o022)
    try:
        unpack(tmp_path / "a.tar.gz", tmp_path / "tree")
    finally:
        os.umask(old)
    assert [(tmp_path / "tree" / name).stat().st_mode & 0o7777 for name in "ab"] == [0o755, 0o644]


def test_the_message_names_the_file(tmp_path):
    (tmp_path / "base.tar.gz").write_bytes(b"x")
    with pytest.raises(ArchiveProblem, match=r"^base\.tar\.gz: it is not a tar\.gz, or damaged"):
        list(read_archive(tmp_path / "base.tar.gz"))
    with pytest.raises(FileNotFoundError):
        list(read_archive(tmp_path / "none"))


def unpack_to(folder, entries):
    folder.mkdir()
    archive = folder.with_suffix(".tar.gz")
    archive.write_bytes(pack(entries))
    unpack(archive, folder)


def test_nothing_is_written_through_what_an_agent_left(tmp_path):
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    (outside / "sub").mkdir(parents=True)
    (outside / "file").write_text("kept")
    (tree / "folder" / "full").mkdir(parents=True)
    (tree / "tests").symlink_to(outside)
    (tree / "conftest.py").symlink_to(outside / "file")
    (tree / "hard").hardlink_to(outside / "file")
    (tree / "locked").mkdir(0o500)
    os.mkfifo(tree / "pipe")
    names = ("conftest.py", "folder", "hard", "locked/new", "pipe", "tests/sub/test_a.py")
    lay([ArchiveEntry(name=name, data=b"new") for name in names], tree)
    assert {name: (tree / name).read_bytes() for name in names} == dict.fromkeys(names, b"new")
    assert (outside / "file").read_text() == "kept"
    assert list((outside / "sub").iterdir()) == []


def test_a_thousand_folders_hold_few_descriptors(tmp_path):
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())
    lay([ArchiveEntry(name=f"{i}/{'d/' * 50}{i}") for i in range(50)], tmp_path)
    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before
    assert len(list(tmp_path.rglob("*"))) == 50 * 52


def test_packing_what_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr("pytest_tfgrpo.sandbox.archives.MAX_BYTES", 9)
    with pytest.raises(ArchiveProblem, match="more than 9 bytes"):
        pack([ArchiveEntry(name="a", data=bytes(10))])


def test_the_stream_is_plain_deflate():
    assert zlib.decompress(pack(TREE), wbits=31)[257:262] == b"ustar"


@pytest.mark.parametrize(
    "name",
    ["/".join(["a" * 199] * 5) + "b", "/".join("a" * 100), "a" * 255],
    ids=["as long as a name may be", "as deep", "as long as a part"],
)
def test_names_as_long_and_as_deep_as_they_may_be_are_packed_and_read(name):
    longest, deepest = len(name) == 1000, name.count("/") == 99
    entries = [ArchiveEntry(name=name, data=b"1")]
    assert read(pack(entries)) == entries
    assert longest or deepest or len(name) == 255
    with pytest.raises(ArchiveProblem, match="too long or too deep"):
        pack([ArchiveEntry(name=f"{name}/a" if deepest else f"{name}b")])


def test_a_link_is_as_long_as_a_name_at_most():
    entry = ArchiveEntry(name="a", link="/".join(["b" * 199] * 5) + "c")
    assert read(pack([entry])) == [entry]
    with pytest.raises(ArchiveProblem, match="leads out of the tree"):
        pack([ArchiveEntry(name="a", link=f"{entry.link}d")])
    with pytest.raises(ArchiveProblem, match="leads out of the tree"):
        read(made(member("a", tarfile.SYMTYPE, f"{entry.link}d")))


@pytest.mark.parametrize("length", [99, 100, 101])
def test_a_name_and_a_link_have_an_extended_header_where_they_do_not_fit(length):
    for entry in (ArchiveEntry(name="n" * length), ArchiveEntry(name="a", link="l" * length)):
        data = pack([entry])
        assert read(data) == [entry]
        assert (b"PaxHeader" in gzip.decompress(data)) is (length > 100)


@pytest.mark.parametrize("length", range(82, 106))
def test_the_length_of_a_record_counts_its_own_digits(length):
    entry = ArchiveEntry(name="d/" * 10 + "n" * length)
    assert read(pack([entry])) == [entry]
    with tarfile.open(fileobj=io.BytesIO(pack([entry]))) as archive:
        assert archive.getnames() == [entry.name]


@pytest.mark.parametrize("kind", [tarfile.AREGTYPE, tarfile.CONTTYPE])
def test_files_of_old_kinds_are_files(kind):
    assert read(old(kind, 3, b"abc")) == [ArchiveEntry(name="x", data=b"abc")]


@pytest.mark.parametrize(("kind", "name"), [(tarfile.DIRTYPE, "x/"), (tarfile.SYMTYPE, "x")])
def test_what_a_folder_or_a_link_says_of_its_size_is_passed_over(kind, name):
    link = "y" if kind == tarfile.SYMTYPE else None
    assert read(old(kind, 700, name=name, link=link)) == ([ArchiveEntry(name="x", link="y")] if link else [])


def old(kind: bytes, size: int, data: bytes = b"", name: str = "x", link: str | None = None) -> bytes:
    """Return an archive of one header, as it is given, and data."""
    info = member(name, kind, link or "")
    info.size = size
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[156:157] = kind
    total = sum(block) - sum(block[148:156]) + 8 * 32
    block[148:156] = b"%06o\0 " % total
    return gzip.compress(bytes(block) + data.ljust(-(-len(data) // 512) * 512, b"\0") + bytes(1024))


@pytest.mark.parametrize(("mode", "runs"), [(0o100, True), (0o755, True), (0o011, False), (0o677, False)])
def test_a_file_runs_where_its_owner_may_run_it(mode, runs):
    assert [entry.executable for entry in read(made(member("a", mode=mode)))] == [runs]


def test_a_long_name_with_a_long_link_of_gnu_is_read_and_lasts_for_one_entry():
    name, link = "n" * 150, "l" * 160
    found = read(made(member(name, tarfile.SYMTYPE, link), member("b"), form=tarfile.GNU_FORMAT))
    assert found == [ArchiveEntry(name=name, link=link), ArchiveEntry(name="b")]


@pytest.mark.parametrize("key", ["path", "linkpath"])
def test_one_name_for_all_files_is_refused_and_other_globals_are_passed_over(key):
    def archive(**headers):
        out = io.BytesIO()
        with tarfile.open(
            fileobj=out, mode="w:gz", format=tarfile.PAX_FORMAT, pax_headers=headers
        ) as written:
            written.addfile(member("a"))
        return out.getvalue()

    assert read(archive(comment="of a commit")) == [ArchiveEntry(name="a")]
    with pytest.raises(ArchiveProblem, match="all its files have one name"):
        read(archive(**{key: "b"}))


@pytest.mark.parametrize("name", ["../up/", "a/../b/", ".git/"])
def test_a_folder_that_leaves_the_tree_is_refused_too(name):
    with pytest.raises(ArchiveProblem, match=r"plain relative path|repository"):
        read(made(member(name, tarfile.DIRTYPE)))


def test_a_prefix_counts_in_archives_of_ustar_alone():
    info = member("name")
    block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
    block[345:351] = b"prefix"
    for magic, name in ((b"ustar\0", "prefix/name"), (b"ustar ", "name")):
        block[257:263] = magic
        block[148:156] = b"%06o\0 " % (sum(block) - sum(block[148:156]) + 8 * 32)
        assert [entry.name for entry in read(gzip.compress(bytes(block) + bytes(1024)))] == [name]


def test_an_archive_may_have_as_many_bytes_files_and_folders_as_it_may(monkeypatch):
    two = [ArchiveEntry(name=f"{n}/a", data=b"12345") for n in range(2)]
    assert len(read(pack(two), max_bytes=10, max_files=2)) == 2
    with pytest.raises(ArchiveProblem, match="more than 9 bytes"):
        read(pack(two), max_bytes=9)
    monkeypatch.setattr("pytest_tfgrpo.sandbox.archives.MAX_BYTES", 10)
    monkeypatch.setattr("pytest_tfgrpo.sandbox.archives.MAX_FILES", 2)
    assert pack(two)
    with pytest.raises(ArchiveProblem, match="more than 10 bytes"):
        pack([two[0], ArchiveEntry(name="b", data=b"123456")])
    with pytest.raises(ArchiveProblem, match="more than 2 files"):
        pack([*two, ArchiveEntry(name="b")])


@pytest.mark.parametrize("entry", [ArchiveEntry(name="../x"), ArchiveEntry(name="x", link="..")])
def test_nothing_is_laid_outside_of_a_folder_though_nobody_packed_it(tmp_path, entry):
    (tmp_path / "tree").mkdir()
    with pytest.raises(ArchiveProblem):
        lay([entry], tmp_path / "tree")
    assert [*tmp_path.rglob("*")] == [tmp_path / "tree"]


@pytest.mark.parametrize(("kind", "said"), [(b"V", "a volume label"), (b"M", "a part of a file")])
def test_parts_of_volumes_are_refused_by_what_they_are(kind, said):
    with pytest.raises(ArchiveProblem, match=f"'x' is {said}"):
        read(old(kind, 0))
