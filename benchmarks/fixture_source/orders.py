"""Domain `orders`: CSV exports of a small shop."""

from __future__ import annotations

import re
from typing import Any

from fixture_source.shape import Data, Family, case

COLUMNS = ("order", "customer", "city", "goods", "units", "amount")
TABLES: dict[str, tuple[tuple[Any, ...], ...]] = {
    "orders-north.csv": (
        ("N-101", "Harbour Cafe", "Leeds", "cups", 40, 92.5),
        ("N-102", "Mill Bakery", "York", "plates", 12, 61.2),
        ("N-103", "Harbour Cafe", "Leeds", "plates", 25, 127.5),
        ("N-104", "Old Forge Inn", "Leeds", "glasses", 96, 240.0),
        ("N-105", "Harbour Cafe", "Hull", "bowls", 18, 77.4),
        ("N-106", "Mill Bakery", "York", "cups", 30, 69.9),
        ("N-107", "Penny Arcade", "Leeds", "cups", 8, 18.5),
    ),
    "orders-south.csv": (
        ("S-201", "Villa Rosa", "Brighton", "glasses", 60, 150.0),
        ("S-202", "Pier Kiosk", "Hove", "cups", 200, 310.0),
        ("S-203", "Villa Rosa", "Brighton", "bowls", 20, 86.0),
        ("S-204", "Cedar House", "Brighton", "jugs", 6, 402.6),
        ("S-205", "Villa Rosa", "Lewes", "plates", 36, 183.6),
        ("S-206", "Villa Rosa", "Brighton", "cups", 50, 115.0),
    ),
    "orders-east.csv": (
        ("E-301", "Mill Bakery", "Ely", "bowls", 14, 60.2),
        ("E-302", "Fen Lodge", "Ely", "glasses", 48, 120.0),
        ("E-303", "Mill Bakery", "Norwich", "plates", 22, 112.2),
        ("E-304", "Wherry Bar", "Norwich", "glasses", 150, 375.0),
        ("E-305", "Mill Bakery", "Ely", "cups", 64, 147.2),
        ("E-306", "Fen Lodge", "Norwich", "jugs", 3, 201.3),
        ("E-307", "Wherry Bar", "Norwich", "cups", 90, 207.0),
    ),
    "orders-west.csv": (
        ("W-401", "Tide Table", "Cardiff", "plates", 44, 224.4),
        ("W-402", "Dragon Arms", "Newport", "glasses", 72, 180.0),
        ("W-403", "Tide Table", "Cardiff", "jugs", 5, 335.5),
        ("W-404", "Coal Yard", "Cardiff", "cups", 120, 276.0),
        ("W-405", "Dragon Arms", "Newport", "bowls", 16, 68.8),
    ),
    "orders-fair.csv": (
        ("F-501", "Lime Tree Inn", "Durham", "jugs", 7, 469.7),
        ("F-502", "Abbey Tearoom", "Whitby", "plates", 52, 265.2),
        ("F-503", "Lime Tree Inn", "Durham", "cups", 84, 193.2),
        ("F-504", "Salt Cottage", "Whitby", "bowls", 26, 111.8),
        ("F-505", "Lime Tree Inn", "Thirsk", "glasses", 110, 275.0),
        ("F-506", "Abbey Tearoom", "Whitby", "cups", 36, 82.8),
        ("F-507", "Castle Stores", "Durham", "plates", 18, 91.8),
        ("F-508", "Lime Tree Inn", "Durham", "bowls", 9, 38.7),
    ),
}


def _column(data: Data) -> list[Any]:
    place = COLUMNS.index(data["column"])
    return [row[place] for row in TABLES[data["file"]]]


def _matching(data: Data) -> list[tuple[Any, ...]]:
    return [row for row in TABLES[data["file"]] if data["who"] in row]


def _flagship(data: Data) -> dict[str, Any]:
    place = COLUMNS.index(data["column"])
    best = sorted(TABLES[data["file"]], key=lambda row: -row[place])[0]
    return {"order": best[0], "customer": best[1]}


def _takings(answer: Any, data: Data) -> list[dict[str, Any]]:
    calls = [{"name": "read_table"}, {"name": "pick_column", "arguments": {"column": data["column"]}}]
    return [
        {"kind": "number", "value": answer, "abs_tol": 0.001, "weight": 4},
        {"kind": "tool_calls", "calls": calls},
    ]


def _visits(answer: Any, data: Data) -> list[dict[str, Any]]:
    return [
        {"kind": "exact", "value": str(answer), "weight": 4},
        {"kind": "tool_calls", "calls": [{"name": "filter_rows", "arguments": {"equals": data["who"]}}]},
    ]


def _rows_csv(rows: list[tuple[Any, ...]]) -> str:
    lines = [",".join(f"{c:g}" if isinstance(c, float) else str(c) for c in row) for row in rows]
    return "\n".join([",".join(COLUMNS), *lines]) + "\n"


GOLDEN = {"leeds-handover.csv", "norwich-desk.csv"}


def _handover(rows: Any, data: Data) -> list[dict[str, Any]]:
    if data["to"] in GOLDEN:
        return [{"kind": "file", "path": data["to"], "golden": f"files/golden/{data['to']}"}]
    pattern = "^" + re.escape(_rows_csv(rows)).replace("\\\n", "\\s+").rstrip("\n") + "$"
    return [{"kind": "file", "path": data["to"], "pattern": pattern}]


def golden_files() -> dict[str, str]:
    """Return the golden files of the handover tasks by name."""
    cases = [c for family in FAMILIES if family.name == "handover" for c in (*family.train, *family.eval)]
    return {f"golden/{c.data['to']}": _rows_csv(_matching(c.data)) for c in cases if c.data["to"] in GOLDEN}


FAMILIES = (
    Family(
        domain="orders",
        name="takings",
        chain=("read_table", "pick_column", "add_numbers"),
        truth=lambda d: round(sum(_column(d)), 2),
        checks=_takings,
        train=(
            case(
                "What are the takings in {file}, adding up the {column} column?",
                file="orders-north.csv",
                column="amount",
            ),
            case("Takings of {file}, by {column}, in total?", file="orders-south.csv", column="amount"),
            case(
                "Sum the column {column} of {file}: takings in pieces.",
                file="orders-north.csv",
                column="units",
            ),
            case(
                "Month end in the south shop. The owner wants to see the takings, which is every {column} in "
                "the export {file} together.",
                file="orders-south.csv",
                column="amount",
                tags=["realistic"],
                tools=[
                    "read_table",
                    "filter_rows",
                    "pick_column",
                    "top_row",
                    "count_items",
                    "add_numbers",
                    "average_numbers",
                    "largest_number",
                ],
            ),
        ),
        eval=(
            case("Let us see the takings from {file} ({column}).", file="orders-east.csv", column="amount"),
            case(
                "How much did {file} bring in? The takings are the sum over {column}.",
                file="orders-west.csv",
                column="amount",
            ),
        ),
    ),
    Family(
        domain="orders",
        name="visits",
        chain=("read_table", "filter_rows", "count_items"),
        truth=lambda d: len(_matching(d)),
        checks=_visits,
        train=(
            case("How many visits by {who} are in {file}?", file="orders-north.csv", who="Harbour Cafe"),
            case("Count the visits from {who} in {file}.", file="orders-north.csv", who="Leeds"),
            case("{file}: visits of the customer {who}?", file="orders-south.csv", who="Villa Rosa"),
            case(
                "The rep in {who} claims hardly any visits. Look in {file}: how many rows match {who}?",
                file="orders-south.csv",
                who="Brighton",
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                "In {file}, how many visits carry the name {who}?",
                file="orders-east.csv",
                who="Mill Bakery",
            ),
            case("Number of visits that {file} lists for {who}?", file="orders-west.csv", who="Cardiff"),
        ),
    ),
    Family(
        domain="orders",
        name="flagship",
        chain=("read_table", "top_row"),
        truth=_flagship,
        checks=lambda answer, _: [{"kind": "json", "value": answer}],
        train=(
            case(
                "Show the flagship of {file}: the row with the highest {column}.",
                file="orders-north.csv",
                column="amount",
            ),
            case("Which row of {file} is the flagship by {column}?", file="orders-south.csv", column="units"),
            case("Flagship entry in {file}, judged by {column}?", file="orders-south.csv", column="amount"),
            case(
                "For the newsletter we present one flagship sale from {file}, the biggest {column}. Send me "
                "that whole row.",
                file="orders-north.csv",
                column="units",
                tags=["realistic"],
            ),
        ),
        eval=(
            case("By {column}, what is the flagship in {file}?", file="orders-east.csv", column="amount"),
            case("Send the flagship row from {file} (top {column}).", file="orders-west.csv", column="units"),
        ),
    ),
    Family(
        domain="orders",
        name="handover",
        chain=("read_table", "filter_rows", "save_file"),
        truth=_matching,
        checks=_handover,
        train=(
            case(
                "Hand over the {who} rows of {file} as a new file {to}.",
                file="orders-north.csv",
                who="Leeds",
                to="leeds-handover.csv",
            ),
            case(
                "Handover for {who}: write its part of {file} to {to}.",
                file="orders-north.csv",
                who="Mill Bakery",
                to="bakery.csv",
            ),
            case(
                "Make the handover file {to} with all that {file} has on {who}.",
                file="orders-south.csv",
                who="Villa Rosa",
                to="rosa.csv",
            ),
            case(
                "A colleague takes {who} from Monday. She needs a handover file, {to}, with just those rows "
                "out of {file}.",
                file="orders-south.csv",
                who="Brighton",
                to="brighton-list.csv",
                tags=["realistic"],
            ),
        ),
        eval=(
            case(
                "Put what {file} holds on {who} into the handover file {to}.",
                file="orders-east.csv",
                who="Norwich",
                to="norwich-desk.csv",
            ),
        ),
    ),
)
