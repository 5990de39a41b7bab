"""The picture of a training job."""

from xml.etree import ElementTree

from pytest_tfgrpo.production.training.versions.curve import EDGE, HEIGHT, WIDTH, curve_svg

SVG = "{http://www.w3.org/2000/svg}"


def row(epoch: int, mode: str, mean: float | None) -> dict[str, object]:
    return {"epoch": epoch, "mode": mode, "gt_score": {"mean": mean}}


def test_each_phase_with_a_score_is_a_point() -> None:
    rows = [row(0, "baseline", 0.0), row(1, "train", None), row(2, "train", 0.5), row(3, "eval", 1.0)]
    tree = ElementTree.fromstring(curve_svg({"run_id": "r<1>", "epochs": rows}))
    title = tree.find(f"{SVG}title")
    line = tree.find(f"{SVG}polyline")
    assert title is not None
    assert line is not None
    assert title.text == "Mean score by phase of run r<1>"
    bottom, top, right = HEIGHT - EDGE, EDGE, WIDTH - EDGE
    middle = (bottom + top) / 2
    assert line.get("points") == f"{EDGE}.0,{bottom}.0 {WIDTH / 2},{middle} {right}.0,{top}.0"
    texts = [one.text for one in tree.findall(f"{SVG}text")]
    assert texts == ["0.00", "baseline 0", "0.50", "train 2", "1.00", "eval 3"]


def test_a_run_with_one_score_or_none_has_a_picture_too() -> None:
    for rows in ([], [row(0, "baseline", 0.25)]):
        tree = ElementTree.fromstring(curve_svg({"run_id": "r", "epochs": rows}))
        assert len(tree.findall(f"{SVG}circle")) == len(rows)
