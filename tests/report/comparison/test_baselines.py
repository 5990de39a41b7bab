"""Two baselines side by side: the verdict of the gate, where the difference lies, and what is not alike."""

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from support.sweeps import Credits, evenly, make_run, rated

from pytest_tfgrpo.core.named_scores import MetricScale
from pytest_tfgrpo.gate.baseline import Baseline, from_run
from pytest_tfgrpo.gate.difference import Bar
from pytest_tfgrpo.report.comparison.baselines import Compared, compare_baselines

BEFORE: dict[str, Credits] = {**evenly(40, [1.0], "text"), **evenly(40, [1.0], "date")}


def stored(credited: Mapping[str, Credits], name: str = "x") -> Baseline:
    return from_run(make_run(final=credited), name)


def compared(before: Baseline, after: Baseline, margin: float = 0.05) -> Compared:
    return compare_baselines(replace(before, name="main"), replace(after, name="new"), bar=Bar(margin=margin))


def text(found: Compared) -> str:
    return " ".join(" ".join(found.lines).split())


def test_equal_baselines_pass() -> None:
    found = compared(stored(BEFORE), stored(BEFORE))
    assert found.verdict.outcome == "pass"
    assert found.lines[0] == "- main: mean 1.000 over 80 scenarios, 0 errors"
    assert found.lines[2] == "+ new: mean 1.000 over 80 scenarios, 0 errors"
    assert found.lines[-1] == "result  passed; margin 0.05"
    assert "largest regressions" not in text(found)


def test_a_regression_fails_and_names_where_it_is() -> None:
    after = BEFORE | evenly(15, [0.0], "date")
    found = compared(stored(BEFORE), stored(after))
    assert found.verdict.outcome == "fail"
    rows = {line.split()[0]: line.split() for line in found.lines if line.startswith(("text ", "dates "))}
    assert rows["text"][1:5] == ["40", "1.000", "1.000", "+0.000"]
    assert rows["dates"][1:5] == ["40", "1.000", "0.625", "-0.375"]
    assert rows["text"][-1] == "1.000"
    assert float(rows["dates"][-1]) < 0.025
    assert "date0" in text(found)
    assert "... 5 more got worse" in text(found)
    assert "... 1 more got worse" in text(
        compared(stored(BEFORE), stored(BEFORE | evenly(11, [0.0], "date")))
    )


def test_the_margin_is_that_of_the_caller() -> None:
    after = BEFORE | evenly(2, [0.0], "date")
    assert compared(stored(BEFORE), stored(after), margin=0.2).verdict.outcome == "pass"
    assert compared(stored(BEFORE), stored(after), margin=0.0).verdict.outcome != "pass"


def test_errors_are_also_read_as_failures() -> None:
    after = BEFORE | evenly(20, [None, 1.0], "date")
    found = compared(stored(BEFORE), stored(after))
    assert found.verdict.outcome == "fail"
    assert "difference +0.000" in text(found)
    assert "errors as 0 -0.125" in text(found)


def test_what_is_in_one_alone_or_has_changed_is_listed() -> None:
    before, after = stored(BEFORE | {"old": [1.0]}), stored(BEFORE | {"new": [1.0]})
    rows = dict(after.scenarios)
    rows["text0"] = replace(rows["text0"], stamp="f" * 64)
    found = text(compared(before, replace(after, scenarios=rows)))
    assert "only in main: 1 (old)" in found
    assert "only in new: 1 (new)" in found
    assert "changed tasks, not compared: 1 (text0)" in found


def test_another_temperature_or_judge_refuses_the_verdict() -> None:
    base = stored(BEFORE)
    judged = replace(base, stamps={**base.stamps, "judge": "1"})
    for before, after, said in (
        (base, replace(base, temperature=0.7), "made at temperature 0.3, the sweep at 0.7"),
        (judged, replace(judged, stamps={**judged.stamps, "judge": "2"}), "scored by another judge"),
    ):
        found = compared(before, after)
        assert found.verdict.outcome == "not_judged"
        assert f"warning: not comparable: the baseline was {said}" in text(found)
        assert "result not checked; " in text(found)


def test_another_actor_or_pack_is_said_and_judged() -> None:
    base = stored(BEFORE)
    found = compared(base, replace(base, actor="openai:x", stamps={**base.stamps, "packs": "9"}))
    assert found.verdict.outcome == "pass"
    assert "warning: main was made with another actor (offline)" in text(found)
    assert "warning: main was made with other prompt packs" in text(found)


def test_without_domains_there_is_no_table_of_them() -> None:
    base = stored(BEFORE)
    old = replace(base, scenarios={id_: replace(row, domain="") for id_, row in base.scenarios.items()})
    assert "by domain" in text(compared(old, base))
    assert "by domain" not in text(compared(old, old))
    one = stored(evenly(12, [1.0], "date"))
    assert "by domain" not in text(compared(one, one))


def test_what_the_second_no_longer_has_fails_it() -> None:
    found = compared(stored(evenly(12, [1], "a")), stored(evenly(12, [1], "b")))
    assert found.verdict.outcome == "fail"
    assert "no scenario is in both" in text(found)
    assert "only in" in text(found)


@given(
    st.dictionaries(st.text(min_size=1, max_size=30), st.sampled_from([0.0, 1.0]), min_size=1, max_size=12)
)
@settings(max_examples=40)
def test_hostile_names_stay_text(credited: dict[str, float]) -> None:
    after = stored({id_: [credit] for id_, credit in credited.items()})
    other = replace(after, name="\x1b[31m\n::error::x", actor="a\n::error::y", run_id="r\n##[z")
    before = replace(other, scenarios={id_: replace(r, sum=float(r.n)) for id_, r in after.scenarios.items()})
    for line in compare_baselines(before, other, bar=Bar(margin=0.05)).lines:
        assert line.isprintable()
        assert not line.lstrip().startswith("::")


def test_metrics_that_both_have_are_compared_and_what_repeats_the_scores_is_left_out() -> None:
    run = make_run(final=BEFORE)
    polite = [from_run(rated(run, {id_: [mean] for id_ in BEFORE}), "x") for mean in (0.25, 0.75)]
    found = compared(*polite)
    (head,) = [n for n, line in enumerate(found.lines) if line.startswith("by metric ")]
    assert found.lines[head + 1].split()[:5] == ["politeness", "80", "0.250", "0.750", "+0.500"]
    assert "check.exact" not in text(found)
    assert "by metric" not in text(compared(polite[0], stored(BEFORE)))


def test_metrics_on_two_scales_are_not_compared() -> None:
    one = from_run(rated(make_run(final=BEFORE), {id_: [0.5] for id_ in BEFORE}), "x")
    other = replace(one, metrics={**one.metrics, "politeness": MetricScale(unit="words", most=9.0)})
    assert "politeness" not in text(compared(one, other))
