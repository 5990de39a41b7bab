"""What the tests of plugin/test_named_gates.py share with the slow ones."""

from xml.etree import ElementTree

from support.project import Project

GATES = """
gates:
  everything:
    min_mean: 0.9
  watched:
    severity: warn
    min_mean: 0.9
"""


def junit(project: Project) -> dict[str, tuple[ElementTree.Element, dict[str, str]]]:
    """Return the test cases of the JUnit file by name, each with its properties."""
    root = ElementTree.parse(project.root / "junit.xml").getroot()
    return {
        case.attrib["name"]: (case, {p.attrib["name"]: p.attrib["value"] for p in case.iter("property")})
        for case in root.iter("testcase")
    }


def gates_of(project: Project) -> dict[str, str]:
    return {gate["name"]: gate["outcome"] for gate in project.report()["gate"]["gates"]}


POLITENESS = """
class Politeness:
    name, weight = "politeness", 0.0

    def __call__(self, batch):
        return [(0.3, "no please") for rollout in batch.rollouts]


def pytest_tfgrpo_rewarders(config):
    return [Politeness()]
"""
