"""What the tests of cli/test_project.py share with the slow ones."""

from pathlib import Path

INI = "[pytest]\ntfgrpo_out = from-{name}\n"
TOML = '{table}\ntfgrpo_out = "from-{name}"\n'


def write(folder: Path, *names: str) -> None:
    tables = {
        "pyproject.toml": "[tool.pytest.ini_options]",
        "pytest.toml": "[pytest]",
        ".pytest.toml": "[pytest]",
    }
    for name in names:
        if name.endswith(".toml"):
            text = TOML.format(table=tables[name], name=name)
        else:
            text = INI.format(name=name)
            text = text.replace("[pytest]", "[tool:pytest]") if name == "setup.cfg" else text
        (folder / name).write_text(text)
