"""The configuration for TensorZero's gateway; the gateway itself is in the slow tests."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jinja2 import Environment, StrictUndefined
from support.buses import EmbeddedPlace
from support.serving import ADA, deploy

from pytest_tfgrpo.core.errors import StoreError
from pytest_tfgrpo.production.bus.protocol import Bus
from pytest_tfgrpo.production.deployment.deployments import Deployments
from pytest_tfgrpo.production.deployment.serving import Serving
from pytest_tfgrpo.production.serving.foreign.tensorzero import (
    CONFIG,
    gateway_files,
    template_of,
    write_gateway_files,
)

TEXTS = {"v1": (), "v2": ("Be brief.", "- Name the carrier.")}
HOSTILE = (
    "{{ system_text }} {{ 7 * 7 }}",
    "{% endraw %}{% endset %}{% include 'tfgrpo.toml' %}",
    "{# no comment #} {%- raw -%}",
    '" ] %}{{ system_text }}{% set parts = ["',
    "\\\" \\u007b\\u007b ' \\n \\",
    "äö \U0001f600 <b>&amp;\x85\u2028",
    "".join(map(chr, range(32))) + "\x7f end\n",
)


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Bus]:
    place = EmbeddedPlace(tmp_path)
    yield place.open()
    place.close()


def config_of(serving: Serving) -> dict[str, object]:
    found: dict[str, object] = tomllib.loads(gateway_files(serving, TEXTS, "support", "m")[CONFIG])
    return found


def weights_of(serving: Serving) -> dict[str, float]:
    function = config_of(serving)["functions"]["support"]  # type: ignore[index]
    weights: dict[str, float] = function["experimentation"]["candidate_variants"]
    assert list(function["variants"]) == list(weights) == list(serving.versions)
    return weights


def rendered(texts: tuple[str, ...], system: str | None = None) -> str:
    template = Environment(undefined=StrictUndefined, autoescape=False).from_string(template_of(texts))
    return template.render(system_text=system)


def test_a_ramp_is_two_variants_with_its_shares(bus: Bus, golden: Callable[[str, str], None]) -> None:
    files = gateway_files(deploy(bus, "v2"), TEXTS, "support", "openai::gpt-5-mini")
    assert list(files) == ["tfgrpo-v2.minijinja", CONFIG]
    golden("loop-tensorzero.toml", files[CONFIG])


def test_weights_follow_each_step_and_a_rollback(bus: Bus) -> None:
    deployments = Deployments(bus)
    assert weights_of(Serving()) == {"v1": 1.0}
    serving, seen = deploy(bus, "v2"), []
    while serving.ramp is not None:
        seen.append(weights_of(serving))
        serving = deployments.advance("v2", ADA)
    shares = (0.05, 0.1, 0.25, 0.5, 0.95)
    assert seen == [{"v1": round(1 - share, 4), "v2": share} for share in shares]
    assert weights_of(serving) == {"v2": 1.0}
    assert weights_of(deployments.roll_back("v2", ADA)) == {"v1": 1.0}


@pytest.mark.parametrize("name", ['sup"port', "a.b", "gateway]\nx=1", "\x7f{}"])
def test_names_of_functions_and_models_are_data(name: str) -> None:
    found = tomllib.loads(gateway_files(Serving(), TEXTS, name, name)[CONFIG])
    assert found["functions"][name]["variants"]["v1"] == {"type": "chat_completion", "model": name}
    assert found["gateway"] == {"disable_pseudonymous_usage_analytics": True}


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_is_run_as_a_template(text: str) -> None:
    assert rendered((text, "Last.")) == f"{text}\n\nLast."
    assert rendered((text,), "{{ 1 }} Agent.") == f"{{{{ 1 }}}} Agent.\n\n{text}"
    literal = template_of((text,)).partition("[")[2].partition("] %}{% if system_text %}")[0]
    assert "{" not in literal
    assert "}" not in literal


def test_half_a_surrogate_pair_can_be_written() -> None:
    assert rendered(("a\ud800b",)) == "a?b"


def test_a_text_that_the_system_text_has_is_not_added_again() -> None:
    assert rendered(("Be brief.", "More."), "Hi. Be brief.") == "Hi. Be brief.\n\nMore."
    assert rendered(("Be brief.",), "Be brief.") == "Be brief."


def test_files_are_written_where_they_changed_and_those_of_old_versions_removed(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "gateway"
    other = gateway_files(Serving(live="v2", states={"v2": "live"}), TEXTS, "f", "m")
    assert write_gateway_files(folder, other)
    assert not write_gateway_files(folder, other)
    (folder / "v2.minijinja").write_text("of the user")
    assert write_gateway_files(folder, gateway_files(Serving(), TEXTS, "f", "m"))
    assert sorted(path.name for path in folder.iterdir()) == [CONFIG, "v2.minijinja"]
    (folder / "tfgrpo-v7.minijinja").write_text("of a version that was forgotten")
    assert write_gateway_files(folder, gateway_files(Serving(), TEXTS, "f", "m"))
    assert not (folder / "tfgrpo-v7.minijinja").exists()


def test_the_configuration_never_names_a_template_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "tfgrpo-v2.minijinja").mkdir()  # cannot be written
    files = gateway_files(Serving(live="v2", states={"v2": "live"}), TEXTS, "f", "m")
    with pytest.raises(StoreError, match=r"cannot write the configuration of TensorZero into .*: .*v2"):
        write_gateway_files(tmp_path, files)
    assert not (tmp_path / CONFIG).exists()
