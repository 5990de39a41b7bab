"""Families in reports: how many there are, how alike they gain, and what untaught families gain."""

from support.report.families import learned, report_of, told

from pytest_tfgrpo.report.markdown import summary
from pytest_tfgrpo.report.page.html import html


def test_every_form_of_the_report_says_it() -> None:
    run = learned(40, 5, 20, without=10)
    wanted = (
        "210 scenarios of 50 families (43.7 of equal size), gains within one correlate by 0.52; seen in "
        "training +0.375 (+0.212 to +0.450), 100 scenarios of 20 families; not seen +0.000 (-0.122 to "
        "+0.122), 110 scenarios of 30 families"
    )
    assert wanted in told(run)
    report = report_of(run)
    plain = summary(report).replace("\\", "")
    assert f"- Families: {wanted}" in plain
    assert wanted in " ".join(html(report, run).split())
