"""The public names of the package."""

import subprocess
import sys

import pytest


def test_importing_the_package_imports_nothing_else() -> None:
    program = "import sys; before = set(sys.modules); import pytest_tfgrpo; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    foreign = {name for name in done.stdout.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert foreign == {"pytest_tfgrpo"}


@pytest.mark.parametrize("module", ["pytest_tfgrpo", "pytest_tfgrpo.cli"])
def test_neither_the_package_nor_the_command_line_start_with_a_heavy_import(module: str) -> None:
    heavy = "{'numpy', 'jsonschema', 'yaml', 'asyncio', 'pytest', 'jinja2', 'regex'}"
    program = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
