"""The tools that the documentation shows, used by a model."""

from __future__ import annotations

from support.examples import ROOT, blocks_of

from .conftest import Bench, script, wants


def test_the_documented_tools_work(bench: Bench) -> None:
    page = (ROOT / "docs" / "actors.md").read_text(encoding="utf-8")
    (source,) = [block.text for block in blocks_of(page) if block.option("file") == "shop.py"]
    bench.tools(source)
    first = wants(("net_price", '{"article": "lamp"}'), ("net_price", '{"article": "sofa"}'))
    second = wants(("add_tax", '{"price": 40}'), ("note", '{"text": "dear"}'), ("add_tax", '{"price": "x"}'))
    outcome = bench.ask(script(first, second, "48.00"))
    assert outcome.answer == "48.00"
    assert bench.told() == [
        "40.0",
        "error: KeyError: 'sofa'",
        "48.00",
        "null",
        "error: the arguments do not fit: /price: 'x' is not of type number",
    ]
    assert (bench.root / "work" / "note.txt").read_text() == "dear"
    specs = {spec.name: spec for spec in bench.model.requests[0].tools}
    assert specs["net_price"].description == "Look up the net price of an article, in pounds."
    assert specs["note"].parameters["properties"].keys() == {"text"}
