"""Undeclared imports: what modules of a project import that neither Python, pytest nor the project has."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from pytest_tfgrpo.harvest.recipe.project_files import ProjectFiles

FILES = 2000
"""Modules that are looked at."""
_IMPORTED = re.compile(
    r"""^[ \t]*(?:import[ \t]+(?P<names>[\w., \t]+)|from[ \t]+(?P<origin>\w+)[\w.]*[ \t]+import\b)"""
    r"""|\bimportorskip\(\s*["'](?P<wanted>\w+)""",
    re.MULTILINE,
)
_PYTHON_2 = frozenset(
    (
        *(
            "BaseHTTPServer",
            "ConfigParser",
            "Cookie",
            "HTMLParser",
            "Queue",
            "SimpleHTTPServer",
            "SocketServer",
        ),
        *("StringIO", "Tkinter", "UserDict", "UserList", "UserString", "__builtin__", "cPickle", "cStringIO"),
        *("commands", "cookielib", "copy_reg", "dummy_thread", "exceptions", "httplib", "md5", "new", "sets"),
        *("sha", "thread", "urllib2", "urlparse", "xmlrpclib"),
    )
)
"""Modules of Python 2, which code for both imports where it can."""
_THERE = frozenset(("_pytest", "iniconfig", "packaging", "pluggy", "py", "pytest")) | _PYTHON_2
"""What needs no declaration where pytest runs."""
_NO_CODE = re.compile(
    r"(?:docs?|examples?|benchmarks?|scripts?|tools|bin)/.*"
    r"|(?:.*/)?(?:setup|conf|noxfile|tasks|fabfile|versioneer)\.py",
    re.DOTALL,
)
"""Modules that no test imports."""


def undeclared_import(files: ProjectFiles) -> str:
    """Return the first module that a folder's code imports and nobody has, "" if there is none."""
    inside = [name for name in files.inside() if name.endswith(".py") and not _NO_CODE.fullmatch(name)]
    own = {part.removesuffix(".py") for name in inside for part in name.split("/")}
    for name in inside[:FILES]:
        for module in _imported(files.text(name)):
            if module not in own and module not in _THERE and module not in sys.stdlib_module_names:
                return module
    return ""


def _imported(text: str) -> Iterator[str]:
    for found in _IMPORTED.finditer(text):
        if found["names"]:
            yield from (words[0] for item in found["names"].split(",") if (words := re.findall(r"\w+", item)))
        else:
            yield found["origin"] or found["wanted"]
