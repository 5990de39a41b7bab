"""Every kind of check judges what an agent did, in a scenario file that pytest collects."""

from support.plugin.checks import CHECKS
from support.project import Project

from pytest_tfgrpo.scoring.checks.registry import KINDS


def test_each_kind_has_its_example_here() -> None:
    assert CHECKS.keys() == KINDS.keys()


def test_the_score_is_the_weighted_share_of_the_checks(project: Project) -> None:
    checks = [{"kind": "exact", "value": "3"}, {"kind": "contains", "value": "nothing", "weight": 3}]
    project.scenarios(train=0, sweep=1, checks=checks, min_score=0.25).run().assert_outcomes(passed=1)
    result = project.scenarios(train=0, sweep=1, checks=checks, min_score=0.26).run()
    result.stdout.fnmatch_lines(["suite-eval0: gt_score 0.250, at least 0.26 required"])


def test_files_beside_a_scenario_are_there_for_the_agent_and_for_its_checks(project: Project) -> None:
    project.agent(
        "def solve(context):\n"
        "    text = (context.workspace / 'data/in.txt').read_text()\n"
        "    (context.workspace / 'out.txt').write_text(text.upper())\n"
        "    return 'done'\n"
    )
    project.write("data/in.txt", "abc\n").write("golden.txt", "ABC\n")
    check = {"kind": "file", "path": "out.txt", "golden": "golden.txt"}
    project.scenarios(train=0, sweep=1, attachments=["data/in.txt"], checks=[check])
    project.ini(actor="python:agent2:solve").run().assert_outcomes(passed=1)
    project.write("golden.txt", "ABD\n").run().assert_outcomes(failed=1)


def test_a_csv_file_of_prompts_and_answers_is_a_suite(project: Project) -> None:
    rows = "".join(f"How many are {n}?,{3 if n else 4},text,eval\n" for n in range(3))
    project.write("simple.scenarios.csv", "prompt,answer,domain,split\n" + rows)
    project.run().assert_outcomes(passed=2, failed=1)
