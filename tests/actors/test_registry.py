"""The table of actors."""

from pathlib import Path

import pytest

from pytest_tfgrpo.actors.reference import NothingActor, ReferenceActor
from pytest_tfgrpo.actors.registry import open_actor
from pytest_tfgrpo.core.errors import ActorError


def test_an_unknown_actor_is_refused_with_the_names_known(tmp_path: Path) -> None:
    with pytest.raises(
        ActorError, match=r"unknown actor 'ofline' in 'ofline:x'; known: command, nothing, offline, openai, p"
    ):
        open_actor("ofline:x", root=tmp_path, settings={})


def test_offline_takes_no_argument(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match="takes no argument, not 'fast'"):
        open_actor("offline:fast", root=tmp_path, settings={})


def test_a_sandbox_that_a_python_actor_would_ignore_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match="sandbox=bwrap cannot isolate a python actor"):
        open_actor("python:json:dumps", root=tmp_path, settings={"sandbox": "bwrap"})


@pytest.mark.parametrize(
    ("spec", "hint"),
    [
        ("support_agent.py:solve", "python:support_agent:solve"),
        ("support_agent:solve", "python:support_agent:solve"),
        ("deep/er/agent.py:solve", "python:deep.er.agent:solve"),
        ("./support_agent.py", "python:support_agent:<callable>"),
        ("python:support_agent.py:solve", "python:support_agent:solve"),
        ("python:deep/er/agent.py:solve", "python:deep.er.agent:solve"),
        ("shop_of_hints.agent:solve", "python:shop_of_hints.agent:solve"),
        ("packed_of_hints.deep:solve", "python:packed_of_hints.deep:solve"),
        ("./agent.sh", "command:./agent.sh"),
        ("agent.sh", "command:./agent.sh"),
    ],
)
def test_a_file_for_an_actor_has_a_hint_at_its_spec(tmp_path: Path, spec: str, hint: str) -> None:
    places = ("src/shop_of_hints/agent.py", "packed_of_hints/deep/__init__.py")
    for name in ("support_agent.py", "deep/er/agent.py", "agent.sh", *places):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("def solve(context): return ''\n")
    with pytest.raises(ActorError) as error:
        open_actor(spec, root=tmp_path, settings={})
    assert str(error.value).endswith(f"; did you mean {hint!r}?")


def test_a_module_in_src_is_said_to_be_there(tmp_path: Path) -> None:
    place = tmp_path / "src" / "shop_of_src" / "agent.py"
    place.parent.mkdir(parents=True)
    place.write_text("def solve(context): return ''\n")
    with pytest.raises(ActorError) as error:
        open_actor("python:shop_of_src.agent:solve", root=tmp_path, settings={})
    assert str(error.value).endswith(
        "; it is in src/: set pythonpath = src in pytest's ini file, or run pip install -e ."
    )


@pytest.mark.parametrize(("spec", "kind"), [("nothing", NothingActor), ("reference: ", ReferenceActor)])
def test_an_actor_is_opened_by_its_name_with_blanks_for_no_argument(
    tmp_path: Path, spec: str, kind: type
) -> None:
    assert isinstance(open_actor(spec, root=tmp_path, settings={}), kind)
    with pytest.raises(ActorError, match=f"the {spec.partition(':')[0]} actor takes no argument, not 'x'"):
        open_actor(f"{spec.partition(':')[0]}:x", root=tmp_path, settings={})


def test_a_model_is_not_available_where_none_is_given(tmp_path: Path) -> None:
    with pytest.raises(ActorError, match="language models such as 'openai:gpt-x' are not available here"):
        open_actor("openai:gpt-x", root=tmp_path, settings={})
