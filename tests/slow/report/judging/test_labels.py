"""Human labels: which answers are drawn, the form that people fill in, and the gain that they correct."""

from collections import Counter
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.report.labels import filled, forty, judged, labels_of, save

from pytest_tfgrpo.core.wire.schema import violations
from pytest_tfgrpo.report.judging.judge import label_lines, label_markdown
from pytest_tfgrpo.report.judging.label_file import read_form, write_form
from pytest_tfgrpo.report.judging.labels import draw, labels_report
from pytest_tfgrpo.report.markdown import escaped
from pytest_tfgrpo.report.value import build


def test_each_scenario_is_as_likely_as_another_whatever_the_size_of_its_family() -> None:
    ids = ["a-1", *(f"b-{n}" for n in range(9)), *(f"c{n}" for n in range(10))]
    run = judged({id_: [0.0] for id_ in ids}, {id_: [1.0] for id_ in ids})
    drawn = Counter(task.place for seed in range(600) for task in draw(run, tasks=5, seed=seed).tasks)
    assert min(drawn.values()) > 150 - 5 * 10.6
    assert max(drawn.values()) < 150 + 5 * 10.6
    in_b = {sum(1 <= task.place <= 9 for task in draw(run, tasks=10, seed=s).tasks) for s in range(50)}
    assert in_b <= {3, 4, 5, 6}


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(1, 3), st.integers(0, 5), st.data())
def test_every_block_fits_the_schema_and_80_columns(tasks: int, answers: int, seed: int, data) -> None:
    run = forty()
    sample = draw(run, tasks=tasks, answers=answers, seed=seed)
    ids = [item.id for item in sample.items]
    some = data.draw(st.dictionaries(st.sampled_from(ids), st.sampled_from([0.0, 0.25, 1.0])))
    block = labels_report(run, labels_of(sample, run, some))
    value = build(run, None) | {"labels": block}
    assert violations("report", value) == []
    assert all(len(text) <= 80 and text.isprintable() for text in label_lines(block, 80))
    assert "<" not in "".join(label_markdown(block, escaped))


def test_10_000_rows_are_read_in_seconds(tmp_path: Path) -> None:
    ids = [f"f{n // 10}-{n}" for n in range(5000)]
    run = judged({id_: [0.0] for id_ in ids}, {id_: [1.0] for id_ in ids})
    sample = draw(run, tasks=5000)
    path = tmp_path / "form.csv"
    write_form(path, sample, {})
    save(path, filled(path, "1"), ";")
    assert len(read_form(path, sample)) == 10_000
