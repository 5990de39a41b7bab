"""What a cluster is refused for before anybody is asked: another version of this package, or of Ray."""

import platform
from importlib.metadata import version

import pytest

from pytest_tfgrpo.core.errors import SettingError
from pytest_tfgrpo.harness.engine.executors.cluster.executor import differing
from pytest_tfgrpo.harness.engine.executors.cluster.node import NodeFacts, installed

OWN = {"pytest-tfgrpo": "1.2.0", "ray": "2.60.0", "numpy": "2.1.0", "httpx": "0.28", "python": "3.11.7"}


def facts(host: str, **packages: str) -> NodeFacts:
    return NodeFacts(problem="", host=host, packages={**OWN, **packages}, pid=1)


def test_a_node_with_another_version_of_the_package_is_named() -> None:
    nodes = [facts("a"), facts("b", **{"pytest-tfgrpo": "1.1.0"})]
    with pytest.raises(SettingError, match=r"the node 'b' has pytest-tfgrpo 1\.1\.0, this machine 1\.2\.0"):
        differing(OWN, nodes)


def test_other_packages_that_differ_are_told_once_for_all_nodes_that_have_them() -> None:
    rest = {name: version for name, version in OWN.items() if name != "httpx"}
    without = NodeFacts(problem="", host="d", packages=rest, pid=1)
    older = facts("e", python="3.11.4")
    nodes = [facts("a"), facts("b", numpy="2.0.0"), facts("c", numpy="2.0.0"), without, older]
    assert differing(OWN, nodes) == [
        "other versions on b, c: numpy 2.0.0 (here 2.1.0)",
        "other versions on d: httpx missing (here 0.28)",
        "other versions on e: python 3.11.4 (here 3.11.7)",
    ]


@pytest.mark.parametrize(("number", "more"), [(8, ""), (9, " and 1 more")])
def test_of_many_packages_and_nodes_that_differ_eight_are_told(number: int, more: str) -> None:
    own = {"pytest-tfgrpo": "1", **{f"p{n}": "1" for n in range(number)}}
    nodes = [NodeFacts(problem="", host=f"h{n}", packages={"pytest-tfgrpo": "1"}, pid=1) for n in range(9)]
    hosts = ", ".join(f"h{n}" for n in range(8))
    rows = ", ".join(f"p{n} missing (here 1)" for n in range(8))
    assert differing(own, nodes) == [f"other versions on {hosts}: {rows}{more}"]


def test_a_node_says_which_python_and_which_packages_it_has() -> None:
    found = installed()
    assert found["python"] == platform.python_version()
    assert found["pytest-tfgrpo"] == version("pytest-tfgrpo")
