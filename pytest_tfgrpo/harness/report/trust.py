"""Caveats: what you must know before you trust a difference, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_tfgrpo.core.records import Mode
from pytest_tfgrpo.core.report_blocks import AsFailures, Flaky, Gain, Report
from pytest_tfgrpo.core.text import interval, line, number, plural, scenarios_of, wrapped
from pytest_tfgrpo.harness.report.families import families_text
from pytest_tfgrpo.harness.report.reach import in_reach
from pytest_tfgrpo.harness.run.headroom import headroom_text

ERRORS_LEGEND = "errors=0: gt mean with errors counted as failures"
MARKDOWN_FLAKY = 20
"""Flaky scenarios that a summary names of each sweep."""
SWEEPS: Mapping[Mode, str] = {"eval": "final", "baseline": "baseline"}


def trust_lines(report: Report, width: int, *, every: bool) -> list[str]:
    """Return what limits what the figures show: how many variants were evaluated on the eval split.

    With `every` also families, headroom, noise, flaky scenarios, what the agent could reach, contamination;
    without it families where training lacks some, and noise where the gain is within it, but no interval
    around 0 says so.
    """
    found, block = list[str](), report.get("families")
    texts = {"families": families_text(report) if every or (block and block["unseen"]) else ""}
    texts["headroom"] = headroom(report) if every else ""
    for name, text in texts.items():
        found += wrapped(f"{name}  {text}", width, hanging=" " * 10) if text else []
    if every or _is_noisy(report):
        found += wrapped(f"noise  {text}", width, hanging="       ") if (text := noise(report)) else []
    if every and (text := flaky(report)):
        found += wrapped(f"flaky  {text}", width, hanging="       ")
        for text in _named(report["flaky"], lambda id_: line(str(id_), 60)):
            found += wrapped(text, width, "  ", "    ")
    if text := earlier(report):
        found += wrapped(f"reused  {text}", width, hanging="        ")
    if every and (text := in_reach(report)):
        found += wrapped(f"reach  {text}", width, hanging="       ")
    contamination = report.get("contamination")
    if every and contamination:
        for finding in contamination["findings"]:
            found += wrapped(f"contamination: {line(finding['text'], 600)}", width, hanging="  ")
    return found


def _is_noisy(report: Report) -> bool:
    """Return whether the gain is within the noise, and no interval around 0 says already that it may be."""
    found, gain = report.get("noise"), report["gain"]
    around_0 = gain is not None and gain["ci95"] is not None and gain["ci95"][0] <= 0 <= gain["ci95"][1]
    return bool(found and found["difference"] is not None and found["gain_within"]) and not around_0


def trust_markdown(report: Report, escaped: Callable[[object], str]) -> list[str]:
    """Return the same for a summary; `escaped` makes Markdown of foreign text."""
    found = [f"- Families: {text}." for text in [families_text(report)] if text]
    found += [f"- Headroom: {text}." for text in [headroom(report)] if text]
    found += [f"- Noise: {text}." for text in [noise(report)] if text]
    if text := flaky(report):
        found += [f"- Flaky: {text}."]
        found += [f"  - {text}." for text in _named(report["flaky"], escaped, MARKDOWN_FLAKY)]
    if text := earlier(report):
        found += [f"- Reused: {text}."]
    if text := in_reach(report):
        found += [f"- Reach: {text}."]
    failures = report.get("as_failures") or []
    if failures:
        means = ", ".join(f"{_label(row)} {number(row['mean'])}{_interval(row)}" for row in failures)
        found += [f"- With errors counted as failures (score 0), gt mean: {means}."]
    return found


def headroom(report: Report) -> str:
    """Return what could be gained, in words; empty for a run that did not train."""
    found = report.get("headroom")
    return headroom_text(found) if found else ""


def noise(report: Report) -> str:
    """Return the noise floor in words; empty without a final sweep."""
    value = report.get("noise")
    if not value:
        return ""
    if value["difference"] is None:
        why = "each scenario ran once" if value["rollouts"] == 1 else "no scenario has two scored rollouts"
        return f"unknown: {why}; set eval_rollouts to 2 or more to measure the spread over seeds"
    scenarios = max(row["scenarios"] for row in value["sweeps"])
    text = (
        f"seed noise alone accounts for differences of up to {value['difference']:.3f} between runs of the "
        f"same library ({plural(scenarios, 'scenario')} x {plural(value['rollouts'], 'rollout')}; "
        f"std {value['seed_std']:.3f} with one rollout each)"
    )
    return text + ("; the gain is within this noise" if value["gain_within"] else "")


def over(gain: Gain) -> str:
    """Return what a gain is over: the baseline sweep, or that of a gate's reference."""
    asked = gain.get("control")
    reference = asked.get("reference") if asked is not None else None
    if reference is None:
        return "the baseline sweep"
    return f"the reference, {reference['kind']} {line(reference['name'], 80)} ({reference['stamp'][:12]})"


def control(gain: Gain) -> str:
    """Return when the baseline sweep was asked, to follow the size of the sample; empty for older reports."""
    asked = gain.get("control")
    if asked is None:
        return ""
    if "reference" in asked and asked["asked"] == "early":
        return "; asked before the final sweep, so what drifted since is part of it"
    if asked["asked"] == "early":
        return "; control asked before training, so what drifted since is part of the gain"
    if not asked["shared"]:
        return "; control asked beside the final sweep"
    alike = plural(asked["shared"], "scenario", "has", "have")
    return f"; control asked beside the final sweep, where {alike} the same prompt and share the answers"


def drift(gain: Gain) -> str:
    """Return what the control changed by while the run lasted, in words; empty without an early part."""
    asked = gain.get("control")
    found = None if asked is None else asked["drift"]
    if found is None:
        return ""
    spread = (
        f"95 % interval {interval(found['ci95'], '+.3f')}" if found["ci95"] else "too few for an interval"
    )
    counted = scenarios_of(found["n"], found["families"], found["just_these"])
    return (
        f"{found['difference']:+.3f} without new lessons, from before training to the final sweep, {spread}, "
        f"{counted}; no part of the gain"
    )


def flaky(report: Report) -> str:
    """Return how many scenarios some seeds solved and some did not; empty when none did."""
    by_mode = Counter(row["mode"] for row in report.get("flaky") or ())
    told = [f"{by_mode[mode]} in the {name} sweep" for mode, name in SWEEPS.items() if by_mode[mode]]
    return f"scenarios that only some seeds solve: {', '.join(told)}" if told else ""


def earlier(report: Report) -> str:
    """Return how many variants the eval split has seen, in words; empty when none but this one."""
    evaluations = report.get("evaluations")
    looks = evaluations.get("looks", evaluations["earlier"] + 1) if evaluations else 1
    if looks < 2:
        return ""
    best = "the better" if looks == 2 else "the best"
    return (
        f"after {looks} looks: so many variants, this one included, were evaluated on this eval split; "
        f"picking {best} of them overstates its score"
    )


def claim(report: Report) -> str:
    """Return what may be claimed of the gain, in words; empty without a gain."""
    gain = report["gain"]
    found = gain.get("claim") if gain and gain["n"] else None
    if found is None:
        return ""
    labels = report.get("labels")
    if labels is not None and labels["gain"] is not None:
        level = f"(level {labels['level']:.3g})"
        side = f"this library does {labels['claim']}" if labels["claim"] else "nothing yet about this library"
        return f"by people's labels, {side} {level}"
    p = "<0.001" if found["p"] is not None and found["p"] < 0.001 else number(found["p"])
    of = f"(p {p}, level {found['level']:.3g}, {plural(found['looks'], 'look')} at this eval split)"
    if found["side"] is None:
        fresh = "; a fresh split allows 0.05" if found["looks"] > 1 else ""
        return f"nothing yet about this library {of}{fresh}"
    return f"this library does {found['side']} {of}; the method is tested by tfgrpo replicate"


def errors_as_zero(report: Report) -> dict[tuple[int, str], float | None]:
    """Return the mean with errors as 0 by epoch and mode; empty for a run without errors."""
    return {(row["epoch"], row["mode"]): row["mean"] for row in report.get("as_failures") or ()}


def contamination_warnings(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the contamination of a run with ``contamination=warn``."""
    found = report.get("contamination")
    if found and found["found"]:
        kinds = ", ".join(f"{kind.replace('_', ' ')} {n}" for kind, n in found["kinds"].items())
        yield (
            f"contamination: {found['found']} found ({kinds}); the first: {found['findings'][0]['text']}; "
            "results on such splits are less reliable than they look"
        )


def _named(rows: Sequence[Flaky], shown: Callable[[object], str], limit: int | None = None) -> Iterator[str]:
    """Yield for each sweep its flaky scenarios, with the rollouts that solved them."""
    for mode, name in SWEEPS.items():
        own = [row for row in rows if row["mode"] == mode]
        told = [
            f"{shown(row['scenario'])} {round(row['solved'] * row['n'])}/{row['n']}" for row in own[:limit]
        ]
        more = f" and {len(own) - len(told)} more" if len(told) < len(own) else ""
        if own:
            yield f"{name} sweep: {', '.join(told)}{more}"


def _label(row: AsFailures) -> str:
    return f"epoch {row['epoch']} ({row['mode']})"


def _interval(row: AsFailures) -> str:
    return "" if row["ci95"] is None else f" ({row['ci95'][0]:.3f} to {row['ci95'][1]:.3f})"
