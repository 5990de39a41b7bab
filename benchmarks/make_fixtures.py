"""Write the fixture suites from their sources, or compare them: ``make_fixtures.py [--check]``.

The sources in ``benchmarks/fixture_source`` hold wordings, data and, in plain Python, the right answers;
they use none of the agent's tools.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from fixture_source import (
    dates,
    dev,
    freight,
    held_out_desk,
    held_out_words,
    notes,
    orders,
    readings,
    settings,
    unseen,
)
from fixture_source.shape import Case, Family

ROOT = Path(__file__).resolve().parent.parent

TRAINED = tuple(
    replace(family, dev=dev.CASES[family.domain][family.name])
    for source in (notes, readings, dates, freight, orders, settings)
    for family in source.FAMILIES
)
MAIN = (*TRAINED, *unseen.MAIN)
HELD_OUT = (*held_out_words.FAMILIES, *held_out_desk.FAMILIES, *unseen.HELD_OUT)


def scenarios(family: Family) -> list[dict[str, Any]]:
    """Return the scenarios of a family as they stand in a file, with their domain and family."""
    rows = []
    for split, cases, letter in (
        ("train", family.train, ""),
        ("eval", family.eval, "e"),
        ("dev", family.dev, "d"),
    ):
        for n, case in enumerate(cases, 1):
            suffix = f"{letter}{n}"
            rows.append(_scenario(family, case, f"{family.domain}-{family.name}-{suffix}", split))
    return rows


def _scenario(family: Family, case: Case, id_: str, split: str) -> dict[str, Any]:
    row: dict[str, Any] = {"id": id_, "domain": family.domain, "split": split, "family": family.name}
    row |= {"prompt": case.prompt} | case.fields
    if "file" in case.data:
        row["attachments"] = [f"files/{case.data['file']}"]
    return row | {"checks": family.checks(family.truth(case.data), case.data)}


def _yaml(domain: str, rows: Sequence[Mapping[str, Any]]) -> str:
    body = {"defaults": {"domain": domain}, "scenarios": [_without(row, "domain") for row in rows]}
    return yaml.safe_dump(body, sort_keys=False, width=110, allow_unicode=True)


def _without(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key not in keys}


def _jsonl(rows: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _answers_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["id", "domain", "split", "family", "tags", "prompt", "answer"])
    for row in rows:
        (check,) = row["checks"]
        about = [row["id"], row["domain"], row["split"], row["family"], " ".join(row.get("tags", []))]
        writer.writerow([*about, row["prompt"], check["value"]])
    return out.getvalue()


def table_csv(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """Return an attachment; whole floats lose their point."""
    cells = [[f"{cell:g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    return "".join(",".join(row) + "\n" for row in [list(columns), *cells])


def main_suite() -> dict[str, str]:
    """Return the files of ``fixtures/`` by name."""
    rows = {family.name: scenarios(family) for family in MAIN}
    by_domain: dict[str, list[dict[str, Any]]] = {}
    for family in MAIN:
        if family.name != "statements":
            by_domain.setdefault(family.domain, []).extend(rows[family.name])
    files = {
        f"{domain}.scenario.yaml": _yaml(domain, by_domain[domain])
        for domain in ("notes", "calendar", "freight", "orders")
    }
    files["statements.scenarios.csv"] = _answers_csv(rows["statements"])
    files["readings.scenarios.jsonl"] = _jsonl(by_domain["readings"])
    files["settings.scenario.json"] = json.dumps(by_domain["settings"], indent=2, ensure_ascii=False) + "\n"
    files |= {f"files/{name}": table_csv(orders.COLUMNS, table) for name, table in orders.TABLES.items()}
    files |= {f"files/{name}": content for name, content in settings.FILES.items()}
    return files | {f"files/{name}": content for name, content in orders.golden_files().items()}


def held_out_suite() -> dict[str, str]:
    """Return the files of ``benchmarks/held-out/fixtures/`` by name."""
    by_domain: dict[str, list[dict[str, Any]]] = {}
    for family in HELD_OUT:
        by_domain.setdefault(family.domain, []).extend(scenarios(family))
    files = {f"{domain}.scenario.yaml": _yaml(domain, rows) for domain, rows in by_domain.items()}
    tables = held_out_desk.TABLES.items()
    return files | {f"files/{name}": table_csv(held_out_desk.COLUMNS, table) for name, table in tables}


SUITES = {"fixtures": main_suite, "benchmarks/held-out/fixtures": held_out_suite}


def stale() -> list[str]:
    """Return the files that are missing, left over or differ from their sources."""
    wrong = []
    for folder, build in SUITES.items():
        base = ROOT / folder
        wanted = build()
        found = {str(p.relative_to(base)): p.read_text("utf-8") for p in base.rglob("*") if p.is_file()}
        names = sorted(wanted.keys() | found.keys())
        wrong += [f"{folder}/{name}" for name in names if wanted.get(name) != found.get(name)]
    return wrong


def main(arguments: Sequence[str]) -> int:
    """Write all suites; with ``--check``, only name the files that differ."""
    if "--check" not in arguments:
        for folder, build in SUITES.items():
            for name, content in build().items():
                target = ROOT / folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(content, "utf-8")
    wrong = stale()
    print(
        "\n".join(f"differs from its source: {name}" for name in wrong)
        or "all fixture files match their sources"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
