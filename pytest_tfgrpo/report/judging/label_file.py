"""Files of labels: the form that people fill in, CSV or JSON lines, and what of it is stored with the run.

What models wrote is inert in a form: no formula for a spreadsheet, whatever separator it reads the file by,
no terminal codes, no number or date that a spreadsheet would rewrite.
"""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from math import fsum
from pathlib import Path
from typing import TypeAlias

from pytest_tfgrpo.core.errors import JournalError
from pytest_tfgrpo.core.file_writing import write_json, write_text
from pytest_tfgrpo.core.files import LABELS, read_plain
from pytest_tfgrpo.core.scenarios import Criterion
from pytest_tfgrpo.core.texts.named_values import short
from pytest_tfgrpo.core.texts.text import block, few, line, plural
from pytest_tfgrpo.core.voices import note, said
from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.core.wire.stamp import stamp
from pytest_tfgrpo.core.wire.strict import load_json
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.report.judging.labels import LabelItem, Labels, Sample

SCHEMA = "tfgrpo.labels/1"
TEXTS = ("task", "steps", "answer", "criteria")
COLUMNS = ("label", *TEXTS, "id")
CELL = 30_000
"""Characters of one cell; spreadsheets cut longer ones."""
QUOTE = "> "
"""Stands before each line of foreign text, so that no cell starts with what a spreadsheet works on."""
_FORMULA = re.compile(r"(;[\s\"']*)(?=[=+\-@＝＋－＠])")
_OPENS = re.compile(rf"\n{QUOTE}(?=\S)")
_YES_NO = {"y": 1.0, "yes": 1.0, "n": 0.0, "no": 0.0}

FilledRow: TypeAlias = tuple[str, Mapping[str, Json]]
"""Where a row stands, and its cells by column."""


def write_form(path: Path, sample: Sample, labels: Mapping[str, float]) -> None:
    """Write the form of a sample, JSON lines for ``.jsonl``, else CSV; raises JournalError if it exists.

    `labels` are those known already, by item.
    """
    if path.exists():
        raise JournalError(f"{path} exists, and may hold labels; name another file with --file")
    rows = [(item.id, _texts(item)) for item in sample.items]
    if path.suffix == ".jsonl":
        lines = [json.dumps({"label": labels.get(id_), **texts, "id": id_}) + "\n" for id_, texts in rows]
        write_text(path, "".join(lines))
        return
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow(COLUMNS)
    writer.writerows(
        [f"{labels[id_]:g}" if id_ in labels else "", *(_inert(texts[name]) for name in TEXTS), id_]
        for id_, texts in rows
    )
    write_text(path, "\ufeff" + file.getvalue())


def _texts(item: LabelItem) -> dict[str, str]:
    criteria = "\n".join(
        said(f"{n}." if one.weight == 1 else f"{n}. (counts {one.weight:g})", one.text)
        for n, one in enumerate(item.scenario.rubric, 1)
    )
    return {name: block(text) for name, text in {**item.text, "criteria": criteria}.items()}


def _inert(text: str) -> str:
    lines = "\n".join(QUOTE + one for one in text.replace("\t", "    ").split("\n"))
    return _cut(_FORMULA.sub(r"\1'", lines))


def _cut(text: str) -> str:
    """Return what fits into a cell: whole lines of the start, and of the end from where a voice opens."""
    if len(text) <= CELL:
        return text
    head = text[: CELL - CELL // 3 - len(QUOTE)]
    head = head.rpartition("\n")[0] or head
    opens = _OPENS.search(text, len(text) - CELL // 3)
    tail = text[opens.start() :] if opens else ""
    return f"{head}\n{note(len(text) - len(head) - len(tail))}{tail}"


def read_form(path: Path, sample: Sample) -> dict[str, float]:
    """Return the labels in a form, by item; raises JournalError where it is not the form of this sample.

    Each row must be there once, with the texts it was written with; a label may be missing.
    """
    items = {item.id: item for item in sample.items}
    labels: dict[str, float] = {}
    seen: dict[str, str] = {}
    problems: list[str] = []
    for where, cells in _rows(path):
        id_ = str(cells.get("id") or "").strip()
        if id_ not in items:
            problems.append(f"{where}: the id {short(id_)} is not in the sample; label only what was drawn")
        elif id_ in seen:
            problems.append(f"{where}: the id {id_!r} is there twice, first at {seen[id_]}")
        elif changed := _changed(cells, items[id_]):
            problems.append(
                f"{where}: {changed} is not what was written for {id_!r}; restore it, or if letters "
                "were lost, save the form as UTF-8"
            )
        else:
            try:
                label = _label(cells.get("label"), items[id_].scenario.rubric)
            except ValueError as error:
                problems.append(f"{where}: {error}")
            else:
                labels |= {} if label is None else {id_: label}
        seen.setdefault(id_, where)
    missing = [id_ for id_ in items if id_ not in seen]
    if missing:
        problems.append(
            f"{plural(len(missing), 'row', 'is', 'are')} missing ({few(missing, 3)}); "
            "leave a label empty, and keep its row"
        )
    if problems:
        more = f"\n  ... {len(problems) - 5} more" if len(problems) > 5 else ""
        told = "".join(f"\n  {line(problem, 300)}" for problem in problems[:5])
        raise JournalError(f"{path} is not the form of this sample, filled in:{told}{more}")
    return labels


def _changed(cells: Mapping[str, Json], item: LabelItem) -> str:
    """Return which text differs from what was written, except for white space; empty if none does."""
    texts = _texts(item)
    for name in TEXTS:
        told = _skeleton(str(cells.get(name) or ""))
        if told not in (_skeleton(texts[name]), _skeleton(_inert(texts[name]))):
            return f"the {name}"
    return ""


def _skeleton(text: str) -> str:
    return "".join(unicodedata.normalize("NFKC", text).split())


def _label(value: Json, rubric: Sequence[Criterion]) -> float | None:
    """Return a label as the share of criteria met, None for an empty cell; raises ValueError."""
    n = len(rubric)
    if isinstance(value, bool):
        value = "y" if value else "n"
    text = "" if value is None else str(value).strip().lower()
    if not text:
        return None
    words = re.findall(r"yes|no|y|n", text)
    if words and not re.sub(r"yes|no|y|n|[\s,;/|-]", "", text):
        if len(words) != n:
            raise ValueError(
                f"the label {short(text)} has {plural(len(words), 'answer')}, but there are {n} criteria"
            )
        met = fsum(one.weight * _YES_NO[word] for one, word in zip(rubric, words, strict=True))
        return met / fsum(one.weight for one in rubric)
    percent = text.endswith("%")
    try:
        number = float(text.rstrip("% ").replace(",", ".")) / (100 if percent else 1)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ValueError(
            f"the label {short(text)} is neither a number from 0 to 1 nor y or n for each criterion"
        )
    return number


def _rows(path: Path) -> Iterator[FilledRow]:
    """Yield the rows of a form with where they stand; raises JournalError on a file that is none."""
    try:
        text = _decoded(read_plain(path))
    except OSError as error:
        raise JournalError(
            f"cannot read {path}: {error.strerror or error}; name the form with --file"
        ) from error
    try:
        yield from _json_rows(text) if path.suffix == ".jsonl" else _csv_rows(text)
    except (ValueError, csv.Error, RecursionError) as error:
        raise JournalError(f"{path} cannot be read as a form of labels: {error}") from error


def _decoded(data: bytes) -> str:
    """Return the text of a file as spreadsheets save it: UTF-8, UTF-16 with its mark, or Windows' own."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def _json_rows(text: str) -> Iterator[FilledRow]:
    for n, row in enumerate(text.split("\n"), 1):
        if row.strip():
            value = load_json(row)
            if not isinstance(value, dict):
                raise ValueError(f"line {n} is no JSON object")
            yield f"line {n}", value


def _csv_rows(text: str) -> Iterator[FilledRow]:
    if text.startswith("sep="):
        text = text.partition("\n")[2]
    head, delimiter = text.partition("\n")[0], ""
    for delimiter in ",;\t":
        names = [
            name.strip().lower() for name in next(csv.reader([head.rstrip("\r")], delimiter=delimiter), [])
        ]
        if {"id", "label"} <= set(names):
            break
    else:
        raise ValueError("its first line does not name the columns 'label' and 'id'")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    next(reader)
    for n, cells in enumerate(reader, 2):
        if any(cell.strip() for cell in cells):
            yield f"row {n}", dict(zip(names, cells, strict=False))


def save_labels(folder: Path, labels: Labels) -> None:
    """Store labels with their run; raises JournalError."""
    value = _content(labels)
    write_json(folder / LABELS, {**value, "stamp": stamp(value)})


def _content(labels: Labels) -> dict[str, Json]:
    return {
        "schema": SCHEMA,
        "run_id": labels.run_id,
        "seed": labels.seed,
        "tasks": labels.tasks,
        "answers": labels.answers,
        "sample": labels.sample,
        "labels": dict(labels.labels),
        "reads": list(labels.reads),
    }


def load_labels(folder: Path) -> Labels | None:
    """Return the labels of the run in `folder`; None where there is no form. Raises JournalError."""
    path = folder / LABELS
    try:
        value = load_json(read_plain(path))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise JournalError(f"cannot read {path}: {error}") from error
    if found := violations("labels", value):
        raise JournalError(f"{path} is malformed: {found[0].pointer or '/'}: {found[0].message}")
    if value.pop("stamp") != stamp(value):
        raise JournalError(f"{path} was changed by hand; read the form again with `tfgrpo labels read`")
    del value["schema"]
    return Labels(**{**value, "reads": tuple(value["reads"])})
