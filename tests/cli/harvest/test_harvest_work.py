"""What ``tfgrpo harvest`` prints while it works, and which tools it works with; nothing is proven here."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.harvests import make_row
from support.repositories import Repository
from support.tools import tfgrpo

from pytest_tfgrpo.cli.harvest import harvest, harvest_model, init, sandbox_choice, verify
from pytest_tfgrpo.core.errors import ActorError, BudgetError, SettingError, StoreError
from pytest_tfgrpo.core.settings import resolve
from pytest_tfgrpo.harvest.fixes import FixCandidate, HarvestStatus, HistoryChange, RootCause
from pytest_tfgrpo.harvest.job.plan import HarvestPlan, HarvestStep
from pytest_tfgrpo.harvest.job.verify import VerifiedScenario


def plan_of(tmp_path: Path, **more: Any) -> HarvestPlan:
    given: dict[str, Any] = {"isolation": "bwrap", **more}
    return HarvestPlan(repository=tmp_path, commits="a..b", suite=tmp_path / "the suite", domain="d", **given)


FAILED = make_row(
    1,
    status=HarvestStatus.VALIDATION_FAILED,
    tests=0,
    cause=RootCause.ENVIRONMENT,
    reason="no network",
    elapsed_s=2.04,
)
DEFERRED = make_row(2, status=HarvestStatus.NEEDS_MANUAL, tests=0, reason="no runner")
STEPS = (
    HarvestStep(row=make_row(0, elapsed_s=61.25), done=1, total=12, left_s=100.0),
    HarvestStep(row=FAILED, done=2, total=12),
    HarvestStep(row=DEFERRED, done=3, total=12, notes=("say how tests run", "or skip it")),
    HarvestStep(row=make_row(3, tests=2), done=12, total=12),
)


def told(monkeypatch: pytest.MonkeyPatch, *steps: HarvestStep, end: BaseException | None = None) -> list[str]:
    """Have the harvest take these steps; returns the isolations that were asked for."""
    asked: list[str] = []

    def work(plan: HarvestPlan, tools: object, watch: object) -> Iterator[HarvestStep]:
        yield from steps
        if end is not None:
            raise end

    monkeypatch.setattr(harvest, "harvest", work)
    monkeypatch.setattr(harvest, "require_sandbox", asked.append)
    return asked


def test_each_change_is_a_line_and_the_last_one_counts_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, plan = told(monkeypatch, *STEPS), plan_of(tmp_path)
    lines = list(harvest._harvest(plan, None))  # type: ignore[arg-type]
    assert lines[:-1] == [
        f" 1/12  validated                1 test    61.2 s  {STEPS[0].row.id}  (about 2 min left)",
        f" 2/12  validation_failed       0 tests     2.0 s  {FAILED.id}  environment: no network",
        f" 3/12  needs_manual_scenario   0 tests     0.0 s  {DEFERRED.id}",
        "    say how tests run",
        "    or skip it",
        f"12/12  validated               2 tests     0.0 s  {STEPS[3].row.id}",
    ]
    listed = (
        f"1 needs_manual_scenario, 2 validated, 1 validation_failed; {plan.suite}/*.manual.md say what to do"
    )
    assert lines[-1] == listed
    plan.suite.mkdir()
    (plan.suite / "a.scenario.yaml").touch()
    (*_, last) = harvest._harvest(plan, None)  # type: ignore[arg-type]
    assert last == f"{listed}; next: pytest '{plan.suite}' --tfgrpo-actor reference"
    assert asked == ["bwrap", "bwrap"]


@pytest.mark.parametrize(
    ("holds", "paths", "said"),
    [
        (True, (), "nothing is new in a..b; --retry does again what failed"),
        (
            False,
            ("x", "y"),
            "no change of a..b touches x or y; A..B means the commits that B has and A has not",
        ),
        (False, (), "no change of a..b; A..B means the commits that B has and A has not"),
    ],
)
def test_nothing_to_do_says_why(
    holds: bool, paths: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = told(monkeypatch)
    monkeypatch.setattr(harvest, "holds_changes", lambda plan: holds)
    lines = list(harvest._harvest(plan_of(tmp_path, isolation="none", paths=paths), None))  # type: ignore[arg-type]
    assert lines == ["warning: the tests run without isolation; what they do, they do to this machine", said]
    assert asked == ["none"]


def test_an_interrupt_and_a_used_budget_keep_what_has_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, lines = plan_of(tmp_path), list[str]()
    told(monkeypatch, STEPS[0], end=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        lines.extend(harvest._harvest(plan, None))  # type: ignore[arg-type]
    assert lines[1:] == ["interrupted: what has a line stays; the same command goes on with the rest"]
    for steps, last in (((STEPS[0],), ["1 validated"]), ((), [])):
        told(monkeypatch, *steps, end=BudgetError("used up"))
        found = list[str]()
        with pytest.raises(BudgetError, match="used up"):
            found.extend(harvest._harvest(plan, None))  # type: ignore[arg-type]
        assert found[len(steps) :] == last


def test_the_live_line_is_taken_away_before_each_line_and_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    class Screen:
        def __init__(self, _: object) -> None:
            self.watch = None

        def clear(self) -> None:
            seen.append("clear")

    monkeypatch.setattr(harvest, "HarvestScreen", Screen)
    for end in (None, KeyboardInterrupt(), BudgetError("x")):
        told(monkeypatch, STEPS[0], end=end)
        seen.clear()
        with suppress(KeyboardInterrupt, BudgetError):
            seen.extend("line" for _ in harvest._harvest(plan_of(tmp_path), None))  # type: ignore[arg-type]
        assert seen[0] == "clear"
        assert seen.count("clear") == (1 if end is None else 2)


@pytest.mark.parametrize("exhausted", ["", "budget_usd of 1 is used up"])
def test_prompts_are_written_by_the_template_or_a_model_from_issues_in_a_file(
    exhausted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[tuple[Any, ...]] = []
    model = SimpleNamespace(exhausted=exhausted)

    @contextmanager
    def opened(arguments: Namespace) -> Iterator[Any]:
        yield model

    monkeypatch.setattr(harvest, "open_builder", lambda environ, isolation: f"builds in {isolation}")
    monkeypatch.setattr(harvest, "open_tools", lambda *given: used.append(given))
    monkeypatch.setattr(harvest, "read_issues", lambda path: {7: path.name})
    monkeypatch.setattr(harvest, "open_statement_model", opened)
    told(monkeypatch, STEPS[3])
    plan = plan_of(tmp_path)
    for statement, issues in (("commit", None), ("model", "issues.jsonl")):
        arguments = Namespace(statement=statement, issues=issues)
        lines = list(harvest._with_prompts(arguments, plan, ()))
        warned = [line for line in lines if line.startswith("warning")]
        expected = f"warning: the model wrote no more prompts: {exhausted}"
        assert warned == ([expected] if exhausted and statement == "model" else [])
    assert used == [
        ((), "builds in bwrap", {}),
        ((), "builds in bwrap", {7: "issues.jsonl"}, model),
    ]


def test_a_dry_run_counts_what_is_no_candidate_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change = HistoryChange(commit="c", base="b", tree="t", base_tree="u", committed_at=0, message="m")
    found = FixCandidate(id="fix-1", change=change, tests=("a", "b"), protected=(), sources=("c",))
    skipped = make_row(4, status=HarvestStatus.SKIPPED, reason="no test changes")
    monkeypatch.setattr(harvest, "preview", lambda plan: [skipped, found, FAILED])
    assert list(harvest._dry_run(plan_of(tmp_path))) == [
        f"skipped                {skipped.id}  no test changes",
        "candidate              fix-1  2 test files, 1 source file",
        f"validation_failed      {FAILED.id}  environment: no network",
        "how long it takes is not known before the first candidate has run",
        "1 candidate, 1 skipped, 1 validation_failed; nothing was written",
    ]


@pytest.mark.parametrize(
    ("settings", "spec"),
    [
        ({"teacher": "openai:big", "actor": "openai:small"}, "openai:big"),
        ({"actor": "openai:small"}, "openai:small"),
        ({"actor": "a = openai:small\nb = openai:large"}, None),
        ({"teacher": "offline", "actor": "openai:small"}, None),
        ({}, None),
    ],
)
def test_statements_are_written_by_the_teacher_else_by_the_one_agent(
    settings: dict[str, str], spec: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    project: Any = SimpleNamespace(root=tmp_path, settings=resolve(settings, {}, {}))
    monkeypatch.setattr(harvest_model, "project_of", lambda arguments: project)
    monkeypatch.setattr(harvest_model, "open_writer", lambda _, spec: asked.append(spec))
    if spec is None:
        with pytest.raises(
            SettingError, match=r"^--statement model needs a language model, and tfgrpo_teach"
        ):
            harvest_model.open_statement_model(Namespace())
        assert asked == []
    else:
        harvest_model.open_statement_model(Namespace())
        assert asked == [spec]


def test_a_writer_has_the_prices_budget_and_answer_length_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    class Models:
        def __init__(self, known: object, **given: Any) -> None:
            seen.update(given, known=known)

        def open(self, spec: str) -> str:
            return f"opened {spec}"

    monkeypatch.setattr(harvest_model, "Models", Models)
    monkeypatch.setattr(harvest_model, "load_models", lambda path: path)
    monkeypatch.setattr(harvest_model, "StatementModel", lambda *given: given)
    monkeypatch.setattr(
        harvest_model, "require_affordable", lambda found, values: seen.update(found=found, values=values)
    )
    for file in ("prices.toml", None):
        settings = resolve(
            {"max_tokens": "77", "budget_usd": "2"} | ({"models": file} if file else {}), {}, {}
        )
        project: Any = SimpleNamespace(root=tmp_path, settings=settings)
        (completer, _) = harvest_model.open_writer(project, "openai:m")  # type: ignore[misc]
        assert completer == "opened openai:m"  # type: ignore[comparison-overlap]
        assert seen["known"] == (tmp_path / file if file else None)
        assert (seen["max_tokens"], seen["found"]) == (77, ["opened openai:m"])
        assert seen["values"] == settings.values


def test_a_first_recipe_is_written_for_a_commit_and_over_another_with_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "open_builder", lambda *_: SimpleNamespace(interpreters=("/python3.11",)))
    shop = Repository(tmp_path / "shop")
    shop.commit({"a.py": "x = 1\n", "tests/test_a.py": ""}, "Begin")
    shop.commit({"package.json": "{}", "a.test.js": "", "a.py": None, "tests/test_a.py": None}, "Move")
    said = "wrote  shop/harvest.toml: review it, then harvest\n"
    file = shop.folder / "harvest.toml"
    assert tfgrpo("harvest", "init", "--repo", "shop", "--commit", "main~1") == said
    first = file.read_text()
    assert 'runner = "pytest"' in first
    assert "overwrite it with --force" in tfgrpo("harvest", "init", "--repo", "shop", code=1)
    assert file.read_text() == first
    assert tfgrpo("harvest", "init", "--repo", "shop", "--commit", "main", "--force") == said
    assert file.read_text() != first


def test_a_machine_without_a_sandbox_names_the_option_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ActorError("sandbox=bwrap needs bubblewrap; install it, or set sandbox=none")

    monkeypatch.setattr(sandbox_choice, "open_bwrap", missing)
    sandbox_choice.require_sandbox("none")
    with pytest.raises(SettingError) as refused:
        sandbox_choice.require_sandbox("bwrap")
    assert str(refused.value) == "the sandbox needs bubblewrap; install it, or set --check-sandbox none"


def test_a_suite_is_proven_in_the_sandbox_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    ids = [f"s{n}" for n in range(7)]

    def proven(suite: Path, *_: object, isolation: str) -> Iterator[VerifiedScenario]:
        seen.append(f"{suite} {isolation}")
        for n, id_ in enumerate(ids, 1):
            cause = RootCause.TEST_FAILURE if n > 1 else None
            yield VerifiedScenario(
                id=id_, done=n, total=7, tests=n, elapsed_s=1.0, cause=cause, reason="it fails"
            )

    monkeypatch.setattr(verify, "proven", proven)
    monkeypatch.setattr(verify, "require_sandbox", lambda isolation: seen.append(f"require {isolation}"))
    found = verify.verify(Namespace(suite="suite", check_sandbox="bwrap"))
    assert next(found) == "1/7  proven        1 test     1.0 s  s0"
    with pytest.raises(StoreError, match=r"^6 of 7 scenarios not proven: s1, s2, s3, s4, s5"):
        list(found)
    assert seen == ["require bwrap", "suite bwrap"]
    del ids[1:]
    assert list(verify.verify(Namespace(suite="s", check_sandbox="none")))[-1] == "7 scenarios proven"
