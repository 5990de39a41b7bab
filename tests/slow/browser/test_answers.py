"""Answers and transcripts as people read them: Markdown, JSON, pictures and nested steps."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect
from support.browser_runs import FAULTS, HOSTILE, Open, Visit, sample_page
from support.builders import make_frame
from support.page.matrix import page_of
from support.sweeps import evenly, make_run

from pytest_tfgrpo.core.records import Frame, Group, Picture, Rollout, Run

Show = Callable[..., Visit]
MARKDOWN = f"""# Totals

The order **A-1** is *late*: see [the policy](https://example.org/p),
[not](javascript:alert(1)), [this](notes.md).

1. one
2. two
   - inner

| item | price |
|:-----|------:|
| <img src=x onerror="window.__hacked=1"> | 4.50 |

```python
x = 1  # **not bold**
```

{HOSTILE}

![chart](out/chart.png) ![gone](gone.png)
"""
ORDER = {"2": 1, "1": 2, "id": 12345678901234567890, "items": [{"sku": f"A-{n}", "n": n} for n in range(300)]}
JSON = json.dumps(ORDER).replace('"1": 2', '"1": 17.10, "note": "one\\ntwo", "1": 1e-7')


def png() -> str:
    """Return a picture of one pixel in base64."""

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    parts = part(b"IHDR", head) + part(b"IDAT", zlib.compress(b"\0\x7f")) + part(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + parts).decode()


PICTURES = (
    Picture(name="out/chart.png", type="image/png", data=png()),
    Picture(name="big.png", why="not kept: it has 900000 bytes, more than 128000"),
)


def steps() -> tuple[Frame, ...]:
    """Return a model that calls a tool in which another model calls one."""

    def at(second: float) -> str:
        return f"2026-08-01T10:00:{second:06.3f}Z"

    return (
        make_frame("big", kind="model", output="I ask.", thoughts="hm", latency_ms=1000.0, started_at=at(0)),
        make_frame("research", input={"q": "x" * 80}, output="14", latency_ms=3000.0, started_at=at(1)),
        make_frame("small", kind="model", output="I look.", latency_ms=500.0, started_at=at(1.1), inside=1),
        make_frame("search", output="", error="too slow", latency_ms=900.0, started_at=at(2), inside=2),
        make_frame("big", kind="model", output="done", latency_ms=1000.0, started_at=at(4)),
    )


@pytest.fixture
def show(visit: Open, tmp_path: Path) -> Show:
    """Return a function that opens the page of a run whose rollouts answer so, at one of them."""

    def open_page(
        answer: str, frames: tuple[Frame, ...] = (), fragment: str = "", **options: object
    ) -> Visit:
        def told(rollout: Rollout) -> Rollout:
            return replace(rollout, answer=answer, frames=frames, pictures=PICTURES)

        def changed(group: Group) -> Group:
            return replace(group, rollouts=tuple(map(told, group.rollouts)))

        run: Run = make_run(evenly(12, [1, 0]), evenly(12, [1, 0]), {"t": [1, 0]})
        phases = tuple(replace(phase, groups=tuple(map(changed, phase.groups))) for phase in run.phases)
        path = tmp_path / "page.html"
        path.write_text(sample_page(replace(run, phases=phases)), encoding="utf-8")
        first = run.phases[-1].groups[0].scenario_id
        return visit(path, fragment or f"#scenario/{first}/epoch2-eval/0", **options)

    return open_page


def quiet(opened: Visit) -> bool:
    requests = [one for one in opened.requests if not one.startswith("data:image/png;base64,")]
    return (opened.messages, requests, opened.violations()) == ([], [], [])


def answer_of(opened: Visit) -> Locator:
    return opened.page.locator(
        "details.rollout[open] > .readable, details.rollout[open] > div > .readable"
    ).first


def test_markdown_is_set_and_its_text_is_one_click_away(show: Show) -> None:
    opened = show(MARKDOWN)
    answer = answer_of(opened)
    expect(answer.get_by_role("heading", name="Totals")).to_be_visible()
    expect(answer.locator("strong").first).to_have_text("A-1")
    expect(answer.locator("ol > li > ul > li")).to_have_text("inner")
    expect(answer.locator("td.right")).to_have_text("4.50")
    expect(answer.locator("pre").first).to_have_text("x = 1  # **not bold**\n")
    link = answer.locator("a")
    expect(link).to_have_count(1)
    assert link.get_attribute("href") == "https://example.org/p"
    assert link.get_attribute("rel") == "noopener noreferrer"
    assert "[not](javascript:alert(1))" in answer.inner_text()
    assert "this (notes.md)" in answer.inner_text()
    assert opened.page.evaluate("window.__hacked") is None
    answer.get_by_role("button", name="raw").click()
    shown = answer.locator("pre").text_content()
    assert shown is not None
    assert shown.startswith(MARKDOWN[: MARKDOWN.index("</script>")])
    opened.page.get_by_role("link", name="Next").click()
    expect(opened.page.locator("details.rollout").first).to_be_visible()
    opened.page.locator("details.rollout > summary").first.click()
    expect(answer_of(opened).get_by_role("button", name="raw")).to_have_attribute("aria-pressed", "true")
    assert quiet(opened)


def test_pictures_of_the_workspace_are_shown_and_of_others_there_is_a_word(show: Show) -> None:
    opened = show(MARKDOWN + "\nbig.png")
    answer = answer_of(opened)
    expect(answer.get_by_role("img", name="out/chart.png")).to_be_visible()
    assert answer.locator("img").evaluate_all("all => all.map((one) => one.naturalWidth)") == [1]
    expect(answer).to_contain_text("[picture “gone”: gone.png is not shown]")
    rollout = opened.page.locator("details.rollout[open]")
    expect(rollout.locator(".pictures")).to_have_text(
        "picture big.png is not kept: it has 900000 bytes, more than 128000"
    )
    opened = show("The chart is out/chart.png.")
    expect(opened.page.locator("details.rollout[open] .pictures img")).to_have_count(1)
    assert quiet(opened)


def test_marked_answers_stand_by_each_other_as_text_and_keep_their_pictures(
    visit: Open, tmp_path: Path
) -> None:
    runs = {name: make_run(None, {"t": [0.0, 1.0]}, run_id=name) for name in ("one", "two", "three")}
    for name, run in runs.items():
        (phase,) = run.phases
        (group,) = phase.groups
        told = [
            replace(r, answer=f"# {name}\n\n- a\n- b\n\n{MARKDOWN}", pictures=PICTURES)
            for r in group.rollouts
        ]
        runs[name] = replace(run, phases=(replace(phase, groups=(replace(group, rollouts=tuple(told)),)),))
    path = tmp_path / "agents.html"
    path.write_text(page_of(runs), encoding="utf-8")
    opened = visit(path, "#scenario/t")
    answers = opened.page.locator("#beside .answers")
    expect(answers.locator("pre")).to_have_count(3)
    expect(answers.locator("mark")).to_have_text(["two", "three"])
    expect(answers.locator(".pictures img")).to_have_count(3)
    order = opened.page.locator("#beside").evaluate("box => box.innerText")
    assert order.index("First difference") < order.index("All rollouts")
    cells = opened.page.locator("#beside td", has_text="# one").all_inner_texts()
    assert len(cells) == 1
    assert "\n" not in cells[0]
    opened.page.get_by_label("mark differences in the raw text").uncheck()
    expect(answers.locator(".markdown")).to_have_count(3)
    expect(answers.locator(".markdown img")).to_have_count(3)
    expect(answers.locator(".pictures img")).to_have_count(0)
    assert quiet(opened)


def test_json_is_a_tree_that_keeps_numbers_order_and_what_is_twice(show: Show) -> None:
    opened = show(JSON)
    answer = answer_of(opened)
    keys = answer.locator(".json > .rows-of-json > * > .key, .json > .rows-of-json > * > summary > .key")
    expect(keys).to_have_text(["2", "1", "note", "1", "id", "items"])
    expect(answer.locator(".value")).to_have_text(["1", "17.10", "1e-7", "12345678901234567890"])
    expect(answer.locator("pre")).to_have_text("one\ntwo")
    answer.get_by_text("[300 items]").click()
    expect(answer.locator(".json details .leaf")).to_have_count(200)
    answer.get_by_role("button", name="show more of 300").click()
    expect(answer.locator(".json details .leaf")).to_have_count(300)
    answer.get_by_role("button", name="raw").click()
    assert answer.locator("pre").text_content() == JSON[:3000]
    assert quiet(opened)


@pytest.mark.parametrize(
    "answer",
    [
        "*" * 100_000,
        "**a** " + "[" * 90_000,
        "**a** " + "![" * 45_000,
        "**a** " + "`a``b```c" * 11_000,
        "```\n" + "never closed " * 7_000,
        "**a**\n" + ">" * 90_000,
        "- a\n- b\n" + "\n".join(" " * n + "- a" for n in range(0, 400, 2)),
        "**a** " + "_a__b" * 18_000,
        "|a|b|\n|-|-|\n" + "|a|b|\n" * 15_000,
        "[" * 50_000 + "]" * 50_000,
        '{"a":' * 19_000 + "1" + "}" * 4_000,
        "[" + "1," * 49_000 + "1]",
        '"' + "\\" * 90_000,
        "# a\n" + "x" * 1_000_000,
    ],
    ids=lambda answer: answer[:12].encode("unicode_escape").decode(),
)
def test_hostile_answers_are_shown(show: Show, answer: str) -> None:
    opened = show(answer)
    rollout = opened.page.locator("details.rollout[open]")
    expect(rollout.get_by_text("transcript, 0 steps")).to_be_visible()
    first = answer_of(opened)
    if first.count():
        expect(first.locator(".markdown, .json").first).to_be_visible()
        opened.page.wait_for_timeout(10)
    assert quiet(opened)


def test_steps_nest_fold_and_say_when_they_ran(show: Show) -> None:
    opened = show("done", steps())
    chat = opened.page.locator("details.rollout[open] .chat")
    expect(chat.locator(".frame")).to_have_count(5)
    research = chat.locator(":scope > .frame").nth(1)
    expect(research.locator(".frame")).to_have_count(2)
    expect(research.locator("> .within > summary")).to_have_text("2 steps within")
    expect(research.locator(".frame").nth(1)).to_contain_text("too slow")
    bars = chat.locator(".time").evaluate_all(
        "all => all.map((one) => [one.firstChild.style.left, one.firstChild.style.width])"
    )
    assert bars == [["0%", "20%"], ["20%", "60%"], ["22%", "10%"], ["40%", "18%"], ["80%", "20%"]]
    expect(chat.get_by_text("hm")).to_have_count(0)
    chat.get_by_text("thoughts, 2 characters").click()
    expect(chat.get_by_text("hm")).to_be_visible()
    chat.get_by_role("button", name="fold all").click()
    expect(chat.locator("details.frame[open]")).to_have_count(0)
    expect(chat.locator(":scope > .frame").nth(2).locator(".gist")).to_have_text("done")
    assert quiet(opened)


@pytest.mark.parametrize(
    "within", [lambda n: 1, lambda n: n, lambda n: 10**9], ids=["deep", "wide", "nowhere"]
)
def test_thousands_of_steps_in_each_other_are_shown(show: Show, within: Callable[[int], int]) -> None:
    opened = show("done", tuple(make_frame("t", inside=within(n)) for n in range(3_000)))
    chat = opened.page.locator("details.rollout[open] .chat")
    expect(chat.get_by_role("button", name="fold all")).to_be_visible()
    chat.get_by_role("button", name="fold all").click()
    chat.get_by_role("button", name="unfold all").click()
    expect(chat.locator(".frame")).to_have_count(3_000)
    assert quiet(opened)


@pytest.mark.parametrize("options", [{"viewport": {"width": 360, "height": 740}}, {"color_scheme": "dark"}])
def test_answers_are_accessible_on_a_phone_and_in_the_dark(
    show: Show, axe: str, options: dict[str, object]
) -> None:
    opened = show(MARKDOWN, steps(), **options)
    expect(answer_of(opened).get_by_role("heading", name="Totals")).to_be_visible()
    opened.page.evaluate(axe)
    assert opened.page.evaluate(FAULTS) == []
    assert opened.page.evaluate("document.querySelector('#detail').scrollWidth <= innerWidth")


def test_long_tables_start_folded_and_links_open_them(visit: Open, pages: Path) -> None:
    opened = visit(pages / "report.html")
    long = opened.page.locator("#failures details.long")
    long.evaluate_all("all => all.forEach((one) => { one.open = false; })")
    opened.page.locator('body > nav a[href="#failures"]').click()
    expect(long).to_have_attribute("open", "")
