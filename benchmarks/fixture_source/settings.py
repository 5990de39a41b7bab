"""Domain `settings`: JSON configuration of services."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from fixture_source.shape import Data, Family, case, exact, number

RECORDS: dict[str, dict[str, Any]] = {
    "gateway.json": {
        "routes": ["alpha", "beta", "gamma"],
        "listener": {"port": 8443, "backlog": 128},
        "limits": {"burst": 40, "quotas": [5, 10, 20, 40]},
        "audit": {"sink": "cold-store", "retention": 90},
    },
    "mailer.json": {
        "sender": "post@example.org",
        "transport": {"relay": "relay-two", "port": 2525, "attempts": 6},
        "limits": {"quotas": [100, 250, 75]},
        "bounce": {"inbox": "returns", "retention": 14},
        "archive": {"bucket": "mail-2026"},
    },
    "search.json": {
        "index": {"shards": 12, "replicas": 2, "analyser": "english"},
        "warmup": {"queries": [30, 45, 15, 60]},
        "cluster": {"seed": "node-7", "quorum": 3},
        "facets": ["brand", "colour"],
        "backup": {"bucket": "search-cold", "retention": 30},
        "debug": {"tracing": "sampled"},
    },
    "billing.json": {
        "ledger": {"currency": "EUR", "rounding": "half-up"},
        "dunning": {"delays": [7, 21, 42], "template": "polite-3"},
        "export": {"bucket": "ledger-out", "format": "camt"},
    },
    "depot.json": {
        "yard": {"pallets": 640, "slots": [12, 18, 9, 33]},
        "labels": ["fragile", "upright", "cold"],
        "courier": {"carrier": "north-line", "cutoff": 17},
        "scanner": {"firmware": "v8-stable", "channel": 11},
        "alarm": {"siren": "two-tone"},
        "owner": "warehouse-team",
        "holidays": ["24 December", "1 May"],
    },
    "kiosk.json": {
        "touch": {"timeout": 45},
        "printer": {"paper": "58mm", "copies": 1},
        "menu": ["bread", "soup"],
    },
}


def _nested(record: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in record.items():
        yield name, value
        if isinstance(value, dict):
            yield from _nested(value)


def _value(data: Data) -> Any:
    return dict(_nested(RECORDS[data["file"]]))[data["key"]]


def _listed(answer: Any, _: Data) -> list[dict[str, Any]]:
    return [{"kind": "exact", "value": ", ".join(answer)}]


def _looked_up(answer: Any, _: Data) -> list[dict[str, Any]]:
    if isinstance(answer, str):
        return [{"kind": "exact", "value": answer, "ignore_case": True}]
    return [{"kind": "json", "value": answer}]


FAMILIES = (
    Family(
        domain="settings",
        name="configured",
        chain=("read_json", "get_field"),
        truth=_value,
        checks=_looked_up,
        train=(
            case("Which {key} is configured in {file}?", file="gateway.json", key="backlog"),
            case("Configured {key} of {file}?", file="mailer.json", key="relay"),
            case("Look up what {file} has configured for {key}.", file="gateway.json", key="sink"),
            case(
                "Pager at three in the morning: letters come back. Which {key} did we have configured in "
                "{file}?",
                file="mailer.json",
                key="inbox",
                tags=["realistic"],
            ),
        ),
        eval=(
            case("For {key}, what value is configured in {file}?", file="search.json", key="analyser"),
            case("The {key} configured by {file}, please.", file="billing.json", key="template"),
        ),
    ),
    Family(
        domain="settings",
        name="sections",
        chain=("read_json", "list_keys", "count_items"),
        truth=lambda d: len(RECORDS[d["file"]]),
        checks=exact,
        train=(
            case("How many sections does {file} have?", file="gateway.json"),
            case("Count the sections, the fields at the top, of {file}.", file="mailer.json"),
            case(
                "Number of sections in the file {file}?",
                file="gateway.json",
                tools=["read_json", "list_keys", "get_field", "count_items", "sort_items", "first_item"],
            ),
            case(
                "Our linter refuses a configuration of more than four sections. How many sections are listed "
                "in {file}?",
                file="mailer.json",
                tags=["realistic"],
            ),
        ),
        eval=(
            case("{file} is made of how many sections?", file="search.json"),
            case("Tell me the count of sections within {file}.", file="billing.json"),
        ),
    ),
    Family(
        domain="settings",
        name="allowance",
        chain=("read_json", "get_field", "add_numbers"),
        truth=lambda d: sum(_value(d)),
        checks=number,
        train=(
            case("What allowance do the {key} in {file} add up to?", file="gateway.json", key="quotas"),
            case("Whole allowance in {file}, given its {key}?", file="mailer.json", key="quotas"),
            case("Total the {key} of {file} to see the allowance.", file="gateway.json", key="quotas"),
            case(
                "Sales promised one customer all of it. Take the {key} from {file}: how large is the "
                "allowance if we add them?",
                file="mailer.json",
                key="quotas",
                tags=["realistic"],
            ),
        ),
        eval=(case("The {key} in {file} make which allowance in sum?", file="search.json", key="queries"),),
    ),
    Family(
        domain="settings",
        name="register",
        chain=("read_json", "list_keys", "sort_items"),
        truth=lambda d: sorted(RECORDS[d["file"]]),
        checks=_listed,
        train=(
            case("Register of the names in {file}, from A to Z?", file="gateway.json"),
            case("Write a sorted register of what is at the top of {file}.", file="mailer.json"),
            case(
                "For the handbook: the register, in ascending order, of field names in {file}.",
                file="gateway.json",
            ),
            case(
                "Auditors want a register of {file}: list each top name, sorted, nothing nested.",
                file="mailer.json",
                tags=["realistic"],
            ),
        ),
        eval=(
            case("An A to Z register for {file}, please.", file="search.json"),
            case("Which names does the sorted register of {file} hold?", file="billing.json"),
        ),
    ),
)

FILES = {name: json.dumps(record, indent=2) + "\n" for name, record in RECORDS.items()}
