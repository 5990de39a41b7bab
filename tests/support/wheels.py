"""Packages made for a test, in an index of files: wheels, and source distributions that build themselves."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

BACKEND = """
import json, os, pathlib, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    name = "{name}-{version}-py3-none-any.whl"
    home = os.path.expanduser("~")
    seen = dict(variables=sorted(os.environ), home=home, outside=pathlib.Path({outside!r}).exists())
    info = "{name}-{version}.dist-info/"
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        wheel.writestr("{name}.py", "SEEN = " + repr(seen))
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return name
"""


SELF_BUILT = 'requires = []\nbuild-backend = "backend"\nbackend-path = ["."]'


def make_wheel(index: Path, name: str, version: str, files: Mapping[str, str] | None = None) -> Path:
    """Write a wheel with a module of its name, and list it."""
    folder = index / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    parts = {
        f"{name}.py": f"VERSION = {version!r}\n",
        **(files or {}),
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in parts.items():
            archive.writestr(member, text)
    return _listed(path)


def make_sdist(index: Path, name: str, version: str, outside: Path, system: str = SELF_BUILT) -> Path:
    """Write a source distribution whose module says what its build saw: variables, home, and `outside`.

    `system` is what builds it: as ``pyproject.toml`` says.
    """
    folder = index / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}.tar.gz"
    top = f"{name}-{version}"
    parts = {
        "pyproject.toml": f"[build-system]\n{system}\n",
        "backend.py": BACKEND.format(name=name, version=version, outside=str(outside)),
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
    }
    with tarfile.open(path, "w:gz") as archive:
        for member, text in parts.items():
            info = tarfile.TarInfo(f"{top}/{member}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return _listed(path)


def _listed(path: Path) -> Path:
    names = sorted(p.name for p in path.parent.iterdir() if p.suffix in (".whl", ".gz"))
    links = "".join(f'<a href="{name}">{name}</a>\n' for name in names)
    (path.parent / "index.html").write_text(f"<html><body>{links}</body></html>")
    return path


def variables(index: Path) -> dict[str, str]:
    """Return the variables that make uv and pip use an index alone."""
    folders = " ".join(str(path) for path in sorted(index.iterdir()))
    return {
        "UV_DEFAULT_INDEX": index.as_uri(),
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": folders,
        "PIP_CONFIG_FILE": "/dev/null",
    }


class _Pages(SimpleHTTPRequestHandler):
    """Files, and for each folder a page in JSON (PEP 691, 700) with the day on which a file came."""

    def __init__(self, *words: object, days: Mapping[str, str], **more: object) -> None:
        self._days = days
        super().__init__(*words, **more)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        folder = Path(self.translate_path(self.path))
        if not folder.is_dir():
            super().do_GET()
            return
        files = [
            {
                "filename": path.name,
                "url": path.name,
                "hashes": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()},
                "upload-time": f"{self._days[path.name]}T00:00:00Z",
            }
            for path in sorted(folder.iterdir())
            if path.name in self._days
        ]
        body = json.dumps({"meta": {"api-version": "1.1"}, "name": folder.name, "files": files}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def served(index: Path, days: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Serve an index that says the day on which each file came; yields the variables that make uv use it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Pages, days=days, directory=str(index)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield {"UV_DEFAULT_INDEX": f"http://127.0.0.1:{server.server_address[1]}", "NO_PROXY": "127.0.0.1"}
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
