"""The prompts of the optimizer `llm`: packaged, stamped, replaceable."""

import json
import shutil
from pathlib import Path

import pytest
from support.completers import ScriptedCompleter
from support.teachers import context_of, learn, says, scored, staged, suite

from pytest_tfgrpo.cli import main
from pytest_tfgrpo.core.errors import PackError
from pytest_tfgrpo.learning.optimizer import llm
from pytest_tfgrpo.learning.optimizer.llm.pack import DOMAIN, PLACES, load_prompts
from pytest_tfgrpo.learning.optimizer.registry import open_optimizer
from pytest_tfgrpo.suite.packs import load_packs

PACKAGED = Path(llm.__file__).parent / "prompts" / "optimizer"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A copy of the packaged prompts in a project's folder of packs."""
    shutil.copytree(PACKAGED, tmp_path / "prompt-packs" / "optimizer")
    return tmp_path / "prompt-packs" / "optimizer"


def change(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def test_the_packaged_prompts_serve_projects_without_their_own(tmp_path: Path, own: Path) -> None:
    packaged = load_prompts(None)
    assert load_prompts(tmp_path / "nowhere") == packaged
    assert load_prompts(own.parent) == packaged
    shutil.rmtree(own)
    assert load_prompts(own.parent) == packaged


def test_own_prompts_are_used_once_they_are_stamped(own: Path) -> None:
    change(own / "system.md", "You coach an agent", "You train a horse")
    with pytest.raises(PackError, match=r"optimizer/system\.md changed since"):
        load_prompts(own.parent)
    assert main(["stamp", str(own.parent)]) == 0
    assert load_prompts(own.parent).stamp != load_prompts(None).stamp
    scenarios = suite(1)
    teacher = ScriptedCompleter(staged(critique=says()))
    learn(context_of([scored(scenarios[0])], scenarios), teacher, own.parent)
    assert teacher.requests[0].messages[0].content.startswith("You train a horse")


def test_a_version_is_told_and_the_stamp_does_not_depend_on_it(own: Path) -> None:
    packaged = load_prompts(None)
    assert packaged.version == "3"
    change(own / "manifest.json", '"version": "3"', '"version": "1-ours"')
    prompts = load_prompts(own.parent)
    assert (prompts.version, prompts.stamp) == ("1-ours", packaged.stamp)
    teacher = ScriptedCompleter(lambda _: "")
    identity = open_optimizer("llm", teacher=lambda: teacher, packs=own.parent).identity
    assert (identity["pack_version"], identity["pack"]) == ("1-ours", packaged.stamp)


def test_the_prompts_lie_beside_the_packs_of_scenarios(own: Path) -> None:
    assert load_packs(own.parent).keys() == {DOMAIN}


@pytest.mark.parametrize("section", sorted(PLACES))
def test_a_missing_section_is_named(own: Path, section: str) -> None:
    manifest = json.loads((own / "manifest.json").read_text())
    manifest["inject"] = [name for name in manifest["inject"] if name != f"{section}.md"]
    if section == "system":
        (own / "system.md").rename(own / "other.md")
        manifest["system"] = "other.md"
    (own / "manifest.json").write_text(json.dumps(manifest))
    main(["stamp", str(own)])
    with pytest.raises(PackError, match=rf"optimizer/{section}\.md is missing"):
        load_prompts(own.parent)


@pytest.mark.parametrize(
    ("section", "place"),
    [(section, place) for section in sorted(PLACES) for place in sorted(PLACES[section])],
)
def test_a_missing_place_is_named(own: Path, section: str, place: str) -> None:
    change(own / f"{section}.md", f"{{{{{place}}}}}", place)
    main(["stamp", str(own)])
    with pytest.raises(PackError, match=rf"optimizer/{section}\.md lacks the placeholder {{{{{place}}}}}"):
        load_prompts(own.parent)


def test_a_place_that_nothing_fills_is_named(own: Path) -> None:
    change(own / "critique.md", "{{library}}", "{{library}} {{librery}}")
    main(["stamp", str(own)])
    with pytest.raises(PackError, match=r"critique\.md: unknown placeholder {{librery}}"):
        load_prompts(own.parent)


def test_an_ordinary_pack_of_that_name_is_not_taken_for_prompts(own: Path) -> None:
    change(own / "manifest.json", DOMAIN, "text")
    main(["stamp", str(own)])
    with pytest.raises(PackError, match="rename the folder"):
        load_prompts(own.parent)
