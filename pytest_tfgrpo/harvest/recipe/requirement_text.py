"""Requirements as text: of requirements files, pip's command lines, Poetry and npm."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator

from pytest_tfgrpo.core.python.dataclass import dataclass
from pytest_tfgrpo.core.wire.wire import Json
from pytest_tfgrpo.harvest.recipe.version_ranges import bounds

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_RANGE = r"(?:===|==|~=|!=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+"
REQUIREMENT = re.compile(
    rf"(?P<name>{_NAME})\s*(?:\[(?P<extras>[A-Za-z0-9._,\s-]*)\])?\s*"
    rf"(?P<range>\(?\s*(?:{_RANGE}(?:\s*,\s*{_RANGE})*\s*,?)?\s*\)?)\s*(?P<marker>;(?!.*--).*)?"
)
"""A requirement by name; none of a URL, a path or an option, which no lock with hashes can hold."""
OWN = re.compile(r"\.(?:/)?(?:\[(?P<extras>[A-Za-z0-9._,\s-]*)\])?")
"""The project itself with extras, as pip takes it: ``.[test]``."""
DEPTH = 5
"""Requirements files that include each other."""
LINTERS = frozenset((
    "autoflake", "autopep8", "bandit", "black", "blacken-docs", "build", "bump2version", "bumpversion",
    "check-manifest", "codecov", "commitizen", "coveralls", "darglint", "docformatter", "doc8", "flake8",
    "flit", "furo", "interrogate", "isort", "lint-requirements", "mkdocs", "mkdocs-material", "mypy",
    "myst-parser", "nox", "pep8", "pep8-naming", "pip-tools", "pre-commit", "prospector", "pycodestyle",
    "pydocstyle", "pyflakes", "pylint", "pytest-black", "pytest-checkdocs", "pytest-codestyle",
    "pytest-flake8", "pytest-flakes", "pytest-isort", "pytest-mccabe", "pytest-mypy", "pytest-pep8",
    "pytest-pycodestyle", "pytest-pydocstyle", "pytest-pylint", "pytest-pyright", "pytest-ruff",
    "pyright", "pyroma", "pyupgrade", "radon", "readme-renderer",
    "recommonmark", "releaser", "ruff", "safety", "semgrep", "sphinx", "sphinx-rtd-theme", "towncrier",
    "tox", "twine", "ty", "validate-pyproject", "vulture", "xenon", "yapf", "yamllint", "zest.releaser",
    "zest-releaser",
))  # fmt: skip
_LINTER_PREFIXES = ("flake8-", "sphinx-", "sphinxcontrib-", "mkdocs-", "pylint-", "types-", "mypy-", "tox-")


@dataclass(frozen=True, kw_only=True, slots=True)
class RequirementList:
    """What a list of requirements says."""

    requirements: tuple[str, ...] = ()
    extras: tuple[str, ...] = ()
    """Extras of the project itself that it names."""
    dropped: tuple[str, ...] = ()
    """What no lock can hold: URLs, paths."""


def normal(name: str) -> str:
    """Return the normalised name of a package (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def name_of(requirement: str) -> str:
    """Return the normalised name in a requirement; empty where it is none."""
    found = REQUIREMENT.fullmatch(requirement.strip())
    return normal(found["name"]) if found else ""


def any_version(requirement: str) -> str:
    """Return a requirement without its range of versions."""
    found = REQUIREMENT.fullmatch(requirement.strip())
    if found is None:
        return requirement
    extras = f"[{found['extras']}]" if found["extras"] else ""
    return f"{found['name']}{extras}{found['marker'] or ''}"


def is_linter(requirement: str) -> bool:
    """Return whether a requirement checks, formats, documents or releases, so that no test needs it."""
    name = name_of(requirement)
    return name in LINTERS or name.startswith(_LINTER_PREFIXES)


def unique(requirements: Iterable[str]) -> tuple[str, ...]:
    """Return the requirements each once, in order, without space around."""
    return tuple(dict.fromkeys(" ".join(item.split()) for item in requirements))


def requirement_list(items: Iterable[str]) -> RequirementList:
    """Return what requirements of a manifest say."""
    kept: list[str] = []
    extras: list[str] = []
    dropped: list[str] = []
    for item in items:
        text = " ".join(item.split())
        if own := OWN.fullmatch(text):
            extras += _names(own["extras"])
        elif REQUIREMENT.fullmatch(text):
            kept.append(text)
        elif text:
            dropped.append(text[:200])
    return RequirementList(
        requirements=unique(kept), extras=tuple(dict.fromkeys(extras)), dropped=tuple(dropped)
    )


def requirements_file(name: str, text_of: Callable[[str], str], depth: int = DEPTH) -> list[str]:
    """Return the items of a requirements file and of those that it includes; options are left out."""
    items: list[str] = []
    for line in re.sub(r"\\\r?\n", " ", text_of(name)).splitlines():
        text = re.sub(r"(^|\s)#.*", "", line).strip()
        if included := re.match(r"(?:-r|--requirement)[\s=]*(\S+)", text):
            if depth:
                items += requirements_file(beside(name, included[1]), text_of, depth - 1)
        elif edited := re.match(r"(?:-e|--editable)[\s=]*(\S+)", text):
            items.append(edited[1])
        elif text and not text.startswith("-"):
            items.append(re.sub(r"\s+--(?:hash|config-settings|global-option).*", "", text))
    return items


def beside(name: str, other: str) -> str:
    """Return the path of a file that another names, relative to the same folder; empty if it leads out."""
    parts: list[str] = name.split("/")[:-1]
    for part in other.split("/"):
        if part == "..":
            if not parts:
                return ""
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "" if other.startswith("/") else "/".join(parts)


def installed_by(line: str, text_of: Callable[[str], str]) -> list[str]:
    """Return what a ``pip install`` line of a script installs, as items of a requirements file."""
    found = re.search(r"(?:^|[\s;&|])(?:uv\s+)?pip3?(?:\.exe)?\s+install\s+(?P<rest>[^;&|]*)", line)
    if found is None:
        return []
    try:
        words = shlex.split(found["rest"], comments=True)
    except ValueError:
        return []
    return list(install_items(words, text_of))


def install_items(words: list[str], text_of: Callable[[str], str]) -> Iterator[str]:
    """Yield what the words behind ``pip install`` name: requirements, files of them, the project."""
    skip = ""
    for word in words:
        if skip in ("-r", "--requirement"):
            yield from requirements_file(beside("", word), text_of)
        elif skip in ("-e", "--editable") or (not skip and not word.startswith("-")):
            yield word
        elif joined := re.fullmatch(r"-r(\S+)|--requirement=(\S+)", "" if skip else word):
            yield from requirements_file(beside("", joined[1] or joined[2]), text_of)
        takes = not skip and word in VALUED
        skip = word if takes else ""


VALUED = frozenset(
    (
        *("-r", "--requirement", "-e", "--editable", "-c", "--constraint"),
        *("-i", "--index-url", "-f", "--find-links", "-t"),
    )
)
"""Options of pip before a value."""


def poetry(name: str, value: Json) -> str:
    """Return a dependency of Poetry as a requirement; empty where no lock can hold it, or it is optional."""
    if isinstance(value, list):
        value = value[-1] if value else ""
    if isinstance(value, dict):
        if value.get("optional") or "version" not in value:
            return ""
        extras = value.get("extras")
        inner = f"[{','.join(map(str, extras))}]" if isinstance(extras, list) else ""
        text = poetry(name + inner, value["version"])
        found = [marker for key in ("markers", "python") if (marker := _marker(key, value.get(key)))]
        joined = found[0] if len(found) == 1 else " and ".join(f"({marker})" for marker in found)
        return f"{text}; {joined}" if text and joined else text
    if not isinstance(value, str):
        return ""
    ranges = [bound for part in value.split(",") for bound in bounds(part.strip())]
    return name + ",".join(ranges)


def _marker(key: str, value: Json) -> str:
    """Return the marker that a key of a dependency means: ``python = "~2.7 || ^3.5"`` is one too."""
    if not isinstance(value, str):
        return ""
    if key == "markers":
        return value
    every = []
    for one in value.split("||"):
        found = [bound for part in one.split(",") for bound in bounds(part.strip())]
        if not found:
            return ""  # any version
        compared = [re.sub(r"^([<>=!~]+)\s*(.+)$", r'python_version \1 "\2"', bound) for bound in found]
        every.append(" and ".join(compared))
    return every[0] if len(every) == 1 else " or ".join(f"({one})" for one in every)


def _names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
