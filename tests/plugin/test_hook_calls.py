"""What plugins supply by hooks, and what is said where one breaks."""

from types import SimpleNamespace
from typing import Any

import pytest

from pytest_tfgrpo.plugin import hook_calls
from pytest_tfgrpo.scoring.checks.registry import KINDS


def config(**hooks: Any) -> Any:
    """Return a configuration whose hooks answer with a value, or raise one that is an error."""

    def hook(value: Any) -> Any:
        def call(**_: object) -> Any:
            if isinstance(value, BaseException):
                raise value
            return value

        return call

    return SimpleNamespace(hook=SimpleNamespace(**{f"pytest_tfgrpo_{n}": hook(v) for n, v in hooks.items()}))


def test_a_hook_that_breaks_is_misuse_that_names_it() -> None:
    with pytest.raises(pytest.UsageError, match=r"^hook pytest_tfgrpo_rewarders raised KeyError: 'x'$"):
        hook_calls.supply_rewarders(config(rewarders=KeyError("x")))
    with pytest.raises(pytest.UsageError, match=r"^as it says$"):
        hook_calls.supply_rewarders(config(rewarders=pytest.UsageError("as it says")))


def test_what_several_plugins_supply_is_one_list_in_their_order() -> None:
    given = config(rewarders=[["a"], None, [], ["b", "c"]], gate_rules=[None, ["d"], ["e"]])
    assert [*map(str, hook_calls.supply_rewarders(given))] == ["a", "b", "c"]
    assert [*map(str, hook_calls.gate_rules(given))] == ["d", "e"]


def test_a_check_kind_has_a_name_of_its_own() -> None:
    found = hook_calls.check_kinds(config(checks=[{"mine": 1}, None, {"yours": 2}]))
    assert dict[str, Any](found) == {**KINDS, "mine": 1, "yours": 2}
    for taken in ([{"exact": 1}], [{"mine": 1}, {"mine": 2}]):
        with pytest.raises(pytest.UsageError, match=r"the check kind '(exact|mine)' is taken"):
            hook_calls.check_kinds(config(checks=taken))


def test_one_that_is_supplied_has_what_is_wanted_of_it() -> None:
    one = SimpleNamespace(name="n", identity={})
    wanted = ("name", "identity")
    assert hook_calls.supply_one(config(actor=one), "pytest_tfgrpo_actor", "spec", wanted) is one
    assert hook_calls.supply_one(config(actor=None), "pytest_tfgrpo_actor", "spec", wanted) is None
    with pytest.raises(pytest.UsageError, match=r"hook pytest_tfgrpo_actor: .* has no attribute 'paid'"):
        hook_calls.supply_one(config(actor=one), "pytest_tfgrpo_actor", "spec", (*wanted, "paid"))


def test_sections_of_the_report_are_lines_and_one_that_breaks_a_complaint() -> None:
    run: Any = SimpleNamespace()
    found = hook_calls.report_sections(config(report_section=[["a", 1], None, ["b"]]), run)
    assert found == (["a", "1", "b"], [])
    found = hook_calls.report_sections(config(report_section=ValueError("no")), run)
    assert found == ([], ["hook pytest_tfgrpo_report_section raised ValueError: no"])
