"""A report page as it is met: from a file, in the dark, on a phone, on paper, by a screen reader."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from support.browser_runs import WIDER, Open, sample_page
from support.builders import make_scenario
from support.page.matrix import page_of
from support.sweeps import make_run

PHONE = {
    "viewport": {"width": 360, "height": 740},
    "is_mobile": True,
    "has_touch": True,
    "device_scale_factor": 2,
}
COMPARED = "#scenario/count-3"
OPENED = "#scenario/train-0/epoch1/0"

CONTRASTS = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const parse = (colour) => {
    if (!known.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      known.set(colour, [r, g, b, a / 255]);
    }
    return known.get(colour);
  };
  const over = (front, back) =>
    front.slice(0, 3).map((c, i) => c * front[3] + back[i] * (1 - front[3])).concat(1);
  const light = (colour) => {
    const [r, g, b] = colour.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((back, front) => over(front, back), [255, 255, 255, 1]);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest("script, style, option, [aria-disabled=true]")) continue;
    const style = getComputedStyle(element);
    const svg = element.closest("svg");
    if (svg && !element.closest("text")) continue;
    const back = ground(svg || element);
    const front = over(parse(svg ? style.fill : style.color), back);
    const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
    const where = `${element.tagName}.${element.getAttribute("class") || ""}`;
    found.push([(a + 0.05) / (b + 0.05), `${where}: ${walker.currentNode.data.trim().slice(0, 40)}`]);
  }
  return found;
}"""

NAMELESS = """() => [...document.querySelectorAll(`button, a[href], input, select, summary, svg, dialog, nav,
    [role=img], [role=group], [role=grid]`)]
  .filter((element) => {
    const by = (element.getAttribute("aria-labelledby") || "").split(" ").filter(Boolean);
    const label = by.map((id) => document.getElementById(id)?.textContent || "").join("")
      || element.getAttribute("aria-label") || element.labels?.[0]?.textContent || element.textContent;
    return element.checkVisibility() && !label.trim();
  }).map((element) => element.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("fragment", ["", OPENED])
@pytest.mark.parametrize("name", ["report.html", "compare.html", "several.html", "hostile.html"])
def test_a_page_opens_from_a_file_and_asks_for_nothing(
    visit: Open, pages: Path, name: str, fragment: str
) -> None:
    opened = visit(pages / name, fragment)
    expect(opened.page.locator("#count")).to_contain_text("scenarios")
    opened.page.locator("details").evaluate_all("all => all.forEach((one) => { one.open = true; })")
    assert (opened.messages, opened.requests, opened.violations()) == ([], [], [])


def test_hostile_text_stays_text(visit: Open, pages: Path) -> None:
    opened = visit(pages / "hostile.html", "#scenario/count-3/epoch2-eval/0")
    page = opened.page
    expect(page.locator("dialog#detail .frame").first).to_be_visible()
    assert "</script><script>window.__hacked" in page.locator("dialog#detail pre").first.inner_text()
    page.locator("dialog#detail details.asked summary").click()
    assert "</script><script>window.__hacked" in page.get_by_label("system prompt").inner_text()
    page.keyboard.press("Escape")
    for option in page.locator("#domain option").all():
        page.select_option("#domain", value=option.get_attribute("value"))
    assert page.evaluate("window.__hacked") is None
    assert page.locator("img, iframe, object, embed, [onload], [onerror]").count() == 0
    shown = page.evaluate("document.body.innerText")
    assert "{{ 7 * 7 }}" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert opened.violations() == []


def test_hostile_text_stays_text_beside_other_runs(visit: Open, pages: Path) -> None:
    opened = visit(pages / "several.html", "#scenario/count-3")
    page = opened.page
    beside = page.locator("#beside")
    expect(beside.locator("h3")).to_have_text("A, B and C side by side")
    expect(beside.locator(".differs").first).to_contain_text("First difference: A r")
    assert "</script><script>window.__hacked" in beside.locator(".answers pre").first.inner_text()
    beside.locator("summary", has_text="Steps of").first.click()
    page.keyboard.press("Escape")
    assert "</script><script>window.__hacked" in page.locator("#compare .runs").inner_text()
    assert page.evaluate("window.__hacked") is None
    assert page.locator("img, iframe, object, embed, [onload], [onerror]").count() == 0
    assert "\u202e" not in page.evaluate("document.body.innerText")
    assert opened.violations() == []


def test_ids_that_are_words_of_javascript_open_and_filter(visit: Open, tmp_path: Path) -> None:
    ids = ("constructor", "__proto__", "toString")
    scenarios = tuple(
        make_scenario(id_, split="eval", domain=id_, tags=("hasOwnProperty", "__proto__")) for id_ in ids
    )
    run = make_run(None, {id_: [0.0, 1.0] for id_ in ids}, scenarios=scenarios)
    other = replace(run, run_id="run2")
    for name, text in {"one": sample_page(run), "agents": page_of({"a": run, "b": other})}.items():
        path = tmp_path / f"{name}.html"
        path.write_text(text, encoding="utf-8")
        opened = visit(path, "#scenarios?split=constructor&tag=__proto__&status=toString")
        expect(opened.page.locator("#count")).to_have_text("3 scenarios")
        for id_ in ids:
            opened.page.evaluate("to => { location.hash = to; }", f"#scenario/{id_}")
            expect(opened.page.locator("#detail-head")).to_have_text(id_)
            expect(opened.page.locator("#detail .cards").first).to_be_visible()
            expect(opened.page.locator("#detail")).to_contain_text("tagged hasOwnProperty __proto__")
        assert opened.messages == []


def test_without_scripts_there_are_the_curve_and_the_tables(visit: Open, pages: Path) -> None:
    page = visit(pages / "compare.html", java_script_enabled=False).page
    expect(page.locator("#curve svg").first).to_be_visible()
    expect(page.locator("#plain table").first).to_be_visible()
    expect(page.locator("#map")).to_be_hidden()
    expect(page.locator("#controls")).to_be_hidden()
    expect(page.get_by_role("button")).to_have_count(0)
    assert page.locator("#plain tbody tr").count() == 36
    expect(page.locator("#compare")).to_be_visible()


@pytest.mark.parametrize("fragment", ["", OPENED])
@pytest.mark.parametrize("name", ["compare.html", "several.html", "hostile.html"])
def test_a_phone_shows_it_without_scrolling_sideways(
    visit: Open, pages: Path, name: str, fragment: str
) -> None:
    page = visit(pages / name, fragment, **PHONE).page
    expect(page.locator("#count")).not_to_be_empty()
    if fragment:
        expect(page.locator("dialog#detail h3").first).to_be_visible()
    assert page.evaluate(WIDER) == []


@pytest.mark.parametrize("fragment", ["", OPENED])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_stands_out_from_its_ground(visit: Open, pages: Path, scheme: str, fragment: str) -> None:
    page = visit(pages / "compare.html", fragment, color_scheme=scheme).page
    expect(page.locator("#map tbody tr").first).to_be_attached()
    if fragment:
        expect(page.locator("dialog#detail .frame").first).to_be_visible()
    found = page.evaluate(CONTRASTS)
    assert len(found) > 200
    assert [f"{ratio:.2f} {where}" for ratio, where in found if ratio < 4.5] == []


def test_the_dark_is_dark_and_the_light_is_light(visit: Open, pages: Path) -> None:
    def lightness(scheme: str) -> int:
        page = visit(pages / "report.html", color_scheme=scheme).page
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/[0-9]+/g).map(Number)")
        return sum(colour[:3])

    assert lightness("dark") < 150 < 600 < lightness("light")


HEADS = """() => [...document.querySelectorAll("main thead th")].filter((head) => head.checkVisibility())
  .map((head) => head.innerText.trim())"""


def test_paper_gets_the_tables_and_no_controls(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html", color_scheme="dark").page
    page.emulate_media(media="print")
    expect(page.locator("#plain table").first).to_be_visible()
    for hidden in ("#map", "#controls", "#buttons", "nav[aria-label='parts of the report']"):
        expect(page.locator(hidden)).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    heads = page.evaluate(HEADS)
    assert {"domain", "scenario", "failed check", "tool or model"} < set(heads)
    assert "" not in heads
    boxed = "all => all.filter((one) => getComputedStyle(one).display !== 'contents').length"
    assert page.locator("main thead button").evaluate_all(boxed) == 0  # else no further sheet has heads
    assert min(ratio for ratio, _ in page.evaluate(CONTRASTS)) >= 4.5


@pytest.mark.parametrize("fragment", ["", OPENED])
def test_a_screen_reader_is_told_what_is_what(visit: Open, pages: Path, fragment: str) -> None:
    page = visit(pages / "compare.html", fragment).page
    if fragment:
        expect(page.locator("dialog#detail .frame").first).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "en"
    assert page.title().startswith("demo: ")
    assert page.locator("h1").count() == 1
    assert page.locator("main").count() == 1
    assert page.locator("th:not([scope])").count() == 0
    assert page.evaluate(NAMELESS) == []
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((element) => element.id)")
    assert len(ids) == len(set(ids))
    levels = page.evaluate(
        "[...document.querySelectorAll('main :is(h1,h2,h3,h4)')].map((h) => Number(h.tagName[1]))"
    )
    assert all(after - before <= 1 for before, after in zip([1, *levels], levels, strict=False))


def test_outcomes_are_told_by_words_and_not_by_colour_alone(visit: Open, pages: Path) -> None:
    page = visit(pages / "report.html", OPENED).page
    expect(page.locator("dialog#detail .frame").first).to_be_visible()
    results = page.get_by_role("group", name="checks").first.inner_text()
    assert "passed" in results
    verdict = page.locator("section.verdict").inner_text()
    assert any(word in verdict for word in ("passed", "FAILED", "inconclusive"))
    for cell in page.locator("#map td.phase[class*=' h']").all()[:12]:
        assert cell.inner_text().strip() != ""


SHOTS: dict[str, dict[str, Any]] = {
    "compare": {"name": "compare.html"},
    "compare-dark": {"name": "compare.html", "color_scheme": "dark"},
    "compare-opened": {"name": "compare.html", "fragment": COMPARED},
    "compare-phone": {"name": "compare.html", "fragment": COMPARED, **PHONE},
}


@pytest.mark.parametrize("shot", SHOTS)
def test_screenshots_are_kept(visit: Open, pages: Path, screenshots: Path, shot: str) -> None:
    options = dict(SHOTS[shot])
    fragment = options.pop("fragment", "")
    page = visit(pages / options.pop("name", "report.html"), fragment, **options).page
    expect(page.locator("dialog#detail pre" if fragment else "#count").first).to_be_visible()
    path = screenshots / f"{shot}.png"
    page.screenshot(path=path, full_page=not fragment)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert path.stat().st_size > 20_000
