import base64
import gzip
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from support.builders import make_experience
from support.sweeps import SETTINGS, evenly, make_run, with_placebo

from pytest_tfgrpo.core.lessons import Library
from pytest_tfgrpo.core.records import JudgeResult, Run
from pytest_tfgrpo.gate.verdict import judge
from pytest_tfgrpo.report.comparison.compare import versus
from pytest_tfgrpo.report.page.draw import curve
from pytest_tfgrpo.report.page.evidence import LessonEvidence
from pytest_tfgrpo.report.page.html import html
from pytest_tfgrpo.report.page.page_tables import effect_columns, reach_columns, settings_rows
from pytest_tfgrpo.report.value import build


def page(run: Run) -> str:
    value = build(run, judge(run, baseline=None, settings=SETTINGS), sections=["a < b"], files="out/x")
    return html(value, run)


RUN = make_run(
    evenly(10, [1, 0]) | {"date1": [1, 1]}, evenly(10, [1, 1]) | {"date1": [0, None]}, {"t": [1, 0]}
)


class Tags(HTMLParser):
    VOID = ("meta", "line", "polyline", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.seen: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_looks_as_agreed(golden: Callable[[str, str], None]) -> None:
    text = re.sub(r"(?s)(<(style|script)[^>]*>).*?(</\2>)", r"\1...\3", page(RUN))
    golden("report.html", re.sub(r"sha256-[A-Za-z0-9+/=]+", "sha256-...", text) + "\n")


def test_the_row_of_a_sweep_counts_the_answers_that_it_shares() -> None:
    value: Any = json.loads(json.dumps(build(RUN, None)))
    legend = "N + M rollouts: the agent ran N times; M answers are taken from the final sweep."
    assert legend not in html(value)
    value["epochs"][0] |= {"rollouts": 265, "shared": 13, "shared_rollouts": 65}
    shown = html(value)
    assert "<td>265 + 65</td>" in shown
    assert legend in shown


def test_a_judge_has_its_own_part_of_the_page() -> None:
    judged = html(build(calibrated(), None))
    assert Tags(judged).open == []
    assert "<h3>Judge</h3>" in judged
    assert "against the checks of 2 rollouts: agreement 1.000" in judged
    assert "<h3>Judge</h3>" not in page(RUN)


def calibrated() -> Run:
    """Return the run of two judged rollouts."""
    run = make_run(final={"a": [1, 0]}, identities={"judge": {"name": "openai:<x>", "identity": {}}})
    (group,) = run.phases[0].groups
    opinions = (JudgeResult(score=0.75, votes=(0.75,)), JudgeResult(score=0.0, votes=(0.0,)))
    rollouts = tuple(replace(r, opinion=o) for r, o in zip(group.rollouts, opinions, strict=True))
    return replace(run, phases=(replace(run.phases[0], groups=(replace(group, rollouts=rollouts),)),))


def test_the_page_is_well_formed_and_fetches_nothing() -> None:
    tags = Tags(page(RUN))
    assert tags.open == []
    names = {tag for tag, _ in tags.seen}
    assert names.isdisjoint({"link", "img", "iframe", "object", "base", "form"})
    for tag, attributes in tags.seen:
        assert not {"src", "style", "action"} & attributes.keys()
        assert not any(name.startswith("on") for name in attributes)
        assert tag != "a" or (attributes["href"] or "").startswith("#")


def test_the_policy_allows_the_pages_own_style_and_script_and_nothing_else() -> None:
    text = page(RUN)
    found = [re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("style", "script")]
    style, script = (one[1] if one else "" for one in found)
    library = markdown_in(text)
    assert "Vitaly Puzrin" in library
    of_style, of_script, of_library = (
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in (style, script, library)
    )
    policy = next(a["content"] for tag, a in Tags(text).seen if a.get("http-equiv"))
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{of_style}'; script-src 'sha256-{of_script}' "
        f"'sha256-{of_library}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert "img-src" not in html(build(RUN, None))


def markdown_in(text: str) -> str:
    """Return the library for Markdown that a page holds."""
    found = re.search(r'id="markdown">(.*?)</script>', text)
    assert found is not None
    library = json.loads(gzip.decompress(base64.b64decode(found[1])))
    assert isinstance(library, str)
    return library


def test_one_script_runs_and_all_others_are_data() -> None:
    kinds = [a.get("type") for tag, a in Tags(page(RUN)).seen if tag == "script"]
    packed = "application/gzip+base64"
    assert kinds == [packed, "application/json", None, packed, packed]


def test_without_its_run_a_report_still_is_a_page() -> None:
    value = build(RUN, None)
    text = html(value)
    assert Tags(text).open == []
    assert 'gzip+base64"' not in text.replace('type="application/gzip+base64" id="chunk-${n}"', "")
    assert "count-words" not in text


def test_equal_runs_give_equal_pages() -> None:
    assert page(RUN) == page(replace(RUN))


def test_another_run_is_drawn_beside_this_one_and_tabled() -> None:
    other = replace(RUN, run_id="run0", stamps={"<b>": "1"})
    text = html(build(RUN, None), RUN, versus(other, RUN), [other])
    assert Tags(text).open == []
    assert f"run {RUN.run_id} compared with run0</title>" in text
    assert "&lt;b&gt;" in text
    assert 'class="sweep second"' in text


def test_columns_without_a_figure_in_any_row_are_left_out() -> None:
    rows: list[dict[str, Any]] = [
        {"shrunken": 0.1, "effect": 0.2, "ci95": None, "p_adjusted": None, "included": 8, "verdict": "helps"},
        {
            "shrunken": None,
            "effect": None,
            "ci95": None,
            "p_adjusted": None,
            "included": 1,
            "verdict": "open",
        },
    ]
    assert effect_columns(rows) == ["effect", "alone", "with / without", "result"]
    assert effect_columns(rows[1:]) == []
    assert effect_columns([{}]) == []
    reach = LessonEvidence(groups=(), rows=(0,), before=None, after=0.5, earlier="")
    assert reach_columns([reach, {}]) == ["after"]


def test_the_lessons_have_a_column_of_effects_only_where_one_is_known() -> None:
    lesson = make_experience()
    run = replace(RUN, library=Library(experiences=(lesson,)))
    row = {
        "id": lesson.id, "domain": "text", "polarity": "do", "text": "x", "in_force": True, "effect": 0.25,
        "shrunken": 0.125, "ci95": None, "p": None, "p_adjusted": None, "included": 8, "left_out": 2,
        "scenarios": 3, "verdict": "helps",
    }  # fmt: skip
    gone = row | {"id": "b" * 16, "in_force": False}

    def heads(*rows: dict[str, Any]) -> str:
        block = {"lesson_dropout": 0.2, "groups": 1, "earlier_groups": 0, "unread": [], "errors": 0,
                 "estimated": len(rows), "lessons": list(rows)}  # fmt: skip
        text = html({**build(run, None), "attribution": block}, run)
        return text.partition("<summary>Active lessons")[2].partition("</thead>")[0]

    assert ">effect<" not in heads()
    assert ">effect<" not in heads(gone)
    assert ">effect<" in heads(row, gone)
    assert ">p adjusted<" not in heads(row, gone)


def test_settings_are_those_that_were_chosen_and_those_as_by_default() -> None:
    chosen, usual = settings_rows(
        {"timeout_s": 7.5, "seed": 0, "gate_strict": True, "otel": False, "baseline": None, "of_old": [1, 2]}
    )
    assert chosen == [("gate_strict", "true"), ("of_old", "1, 2"), ("timeout_s", "7.5 s")]
    assert usual == [("baseline", "-"), ("otel", "false"), ("seed", "0")]


def test_settings_name_no_folder_of_the_machine() -> None:
    chosen, _ = settings_rows({"out": "/srv/agents/out/", "evidence": "data/e.jsonl", "timeout_s": 7.5})
    assert chosen == [("evidence", "data/e.jsonl"), ("out", "out"), ("timeout_s", "7.5 s")]


def test_phases_have_one_name_all_over_the_page() -> None:
    shown = re.sub(r"<script.*?</script>|<[^>]*>", " ", page(RUN), flags=re.DOTALL)
    assert "epoch2-eval" not in re.sub(r"baseline has .*?lessons", "", shown)
    assert "epoch 1" in shown


def test_values_of_any_shape_are_shown() -> None:
    value = build(RUN, None) | {
        "soundings": {
            "spread": 0.03125,
            "seeds": [1, 2],
            "rows": [{"id": "s1", "ci95": [0.25, 0.5], "odd": None}],
        },
        "tides": 3,
        "nothing": [],
    }
    text = html(value, RUN)
    assert Tags(text).open == []
    for part in ("<h3>Soundings</h3>", "0.031", "0.250 to 0.500", "<h3>Tides</h3>"):
        assert part in text
    assert "Nothing</h3>" not in text


def test_every_table_and_the_curve_are_labelled() -> None:
    tags = Tags(page(RUN))
    assert all(attributes.get("scope") for tag, attributes in tags.seen if tag == "th")
    assert ("svg", "img") in [(tag, attributes.get("role")) for tag, attributes in tags.seen]
    assert dict(tags.seen[0:1]) == {"html": {"lang": "en"}}


@pytest.mark.parametrize(
    "text", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "{{ 7 * 7 }}\x1b[2J"]
)
def test_foreign_text_stays_text(text: str) -> None:
    lessons = Library(experiences=(make_experience(summary32=text, domain=text),))
    run = replace(
        RUN,
        task_id=text,
        reason=text,
        warnings=(text,),
        library=lessons,
        settings={**SETTINGS, "actor": text},
        stamps={text: text},
        scenarios=tuple(replace(s, domain=text) for s in RUN.scenarios),
    )
    found = page(run)
    assert Tags(found).open == []
    assert {tag for tag, _ in Tags(found).seen} <= {
        tag for tag, _ in Tags(page(replace(RUN, reason="x", warnings=("x",)))).seen
    }
    assert "\x1b" not in found


@pytest.mark.parametrize(
    "run", [make_run(), make_run(final={"a": [None]}), make_run(final={"a": [1]}), make_run({"a": [0]})]
)
def test_runs_that_have_little_to_show_are_shown(run: Run) -> None:
    assert Tags(page(run)).open == []


def rows(*means: float | None) -> list[dict[str, Any]]:
    return [
        {"epoch": i, "mode": "train" if i else "baseline", "gt_score": {"mean": m, "ci95": None}}
        for i, m in enumerate(means)
    ]


def test_the_curve_stays_inside_its_drawing() -> None:
    drawn = curve(rows(0.0, 1.0, None, 0.5))
    assert [p["label"] for p in drawn["points"]] == ["baseline", "epoch 1", "epoch 3"]
    ys = [p["y"] for p in drawn["points"]]
    assert ys == [drawn["base"], 12, (drawn["base"] + 12) / 2]
    assert all(drawn["left"] < p["x"] < drawn["right"] for p in drawn["points"])


def test_a_placebo_is_no_point_of_the_curve_and_the_page_has_what_it_shows() -> None:
    placebo = {"epoch": -2, "mode": "placebo", "gt_score": {"mean": 0.2, "ci95": None}}
    assert [p["label"] for p in curve([placebo, *rows(0.0, 1.0)])["points"]] == ["baseline", "epoch 1"]
    run = make_run(evenly(20, [0.0]), evenly(20, [1.0]), {"t": [1, 0]})
    assert "+1.000 over placebo" in page(with_placebo(run, evenly(20, [0.0])))


def test_many_epochs_keep_their_labels_apart() -> None:
    drawn = curve(rows(*[0.5] * 50))
    assert sum(p["named"] for p in drawn["points"]) <= 10
