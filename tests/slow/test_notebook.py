"""The notebook of the docs, and the stop button of one, in a real kernel."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import ROOT
from support.tools import require_module

NOTEBOOK = ROOT / "docs" / "examples" / "notebook.ipynb"
STOPPED = """
import threading, pytest_tfgrpo as tfgrpo
checks = [{"kind": "exact", "value": "3"}]
suite = [{"id": f"s{n}", "split": "eval", "prompt": f"p{n}", "checks": checks} for n in range(4)]
wait = True
def slow(context):
    if wait and context.task.id != "s0":
        threading.Event().wait(60)
    return "3"
slow.identity = {"version": 1}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return where a kernel runs, which keeps nothing in the home folder."""
    require_module("nbclient")
    require_module("ipykernel")
    for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    work = tmp_path / "work"
    work.mkdir()
    return work


def executed(notebook: Any, folder: Path, **options: Any) -> list[dict[str, str]]:
    """Return the last result of each cell that has one, by its kind."""
    from nbclient import NotebookClient

    at = {"metadata": {"path": str(folder)}}
    NotebookClient(
        notebook, **{"timeout": 120, "kernel_name": "python3", "resources": at} | options
    ).execute()
    outputs = [cell.get("outputs", []) for cell in notebook.cells]
    return [found[-1].get("data", {}) for found in outputs if found]


@pytest.mark.filterwarnings("default")  # those of Jupyter itself
def test_the_notebook_runs_offline_and_shows_results_tables_and_a_page(folder: Path) -> None:
    import nbformat

    single, rows, several, page, learned, kept = executed(nbformat.read(NOTEBOOK, 4), folder)
    assert single["text/plain"].startswith("complete: run ")
    assert len(single["text/plain"].splitlines()) == 6
    assert "<th>answer</th>" in single["text/html"]
    assert "words-4" in rows["text/plain"]
    assert "careful is better than hasty" in several["text/plain"]
    assert "<th>careful: answer</th>" in several["text/html"]
    assert page["text/plain"] == "{'hasty': True, 'careful': True}"
    assert learned["text/plain"].startswith("passed: run ")
    assert "notebook/runs" in kept["text/plain"]
    assert len([*folder.glob("out/notebook/comparisons/*.html")]) == 1
    assert len([*folder.glob("out/notebook/runs/*/report.html")]) == 1


@pytest.mark.filterwarnings("default")
def test_the_stop_button_ends_a_run_with_its_files_and_the_next_cell_goes_on(folder: Path) -> None:
    from nbformat import v4

    cells = [
        STOPPED,
        "tfgrpo.run('.', suite, actor=slow, task_id='t', acceptance='off', concurrency=1)",
        "wait = False",
        "result = await tfgrpo.arun('.', suite, actor=slow, task_id='t', acceptance='off', concurrency=1, "
        "resume='latest')\nresult",
    ]
    notebook = v4.new_notebook(cells=[v4.new_code_cell(text) for text in cells])
    shown = executed(notebook, folder, timeout=5, interrupt_on_timeout=True, allow_errors=True)
    assert notebook.cells[1].outputs[-1]["ename"] == "KeyboardInterrupt"
    assert "files    out/t/runs/" in shown[-1]["text/plain"]
    (report,) = folder.glob("out/t/runs/*/report.json")
    assert json.loads(report.read_text())["status"] == "complete"
