"""Makes pages of the docs site from files that are written for a repository browser."""

import os
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PLACES = {ROOT / "README.md": "start.md", ROOT / "CHANGELOG.md": "changelog.md"}
"""Files outside docs/ that are pages of the site, by where they are there."""
_FENCE = re.compile(r"^```(\S+)([^\n]*)(\n.*?^```$)", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^<!-- .*?-->$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[((?:`[^`]*`|[^\]])*)\]\(([^)\s:]+)\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of PLACES."""
    for file, place in PLACES.items():
        files.append(File.generated(config, place, content=file.read_text("utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Return a page whose links lead somewhere on the site, and whose examples show their file names."""
    place = page.file.src_uri
    source = next((file for file, known in PLACES.items() if known == place), DOCS / place)
    markdown = _COMMENT.sub("", markdown)  # some have what only tests run
    parts, last = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [_linked(markdown[last : fence.start()], source, place, config.repo_url), _titled(fence)]
        last = fence.end()
    return "".join([*parts, _linked(markdown[last:], source, place, config.repo_url)])


def _titled(fence: re.Match[str]) -> str:
    """Return a block of code with the file that it is as its title, without words for tests."""
    name = re.search(r"\b(?:file|append)=(\S+)", fence[2])
    title = f' title="{name[1]}"' if name else ""
    # what a terminal shows is no text to paste into one
    return f"```{'{.console .no-copy}' if fence[1] == 'console' else fence[1] + title}{fence[3]}"


def _linked(text: str, source: Path, place: str, repository: str | None) -> str:
    def link(match: re.Match[str]) -> str:
        name, mark, anchor = match[2].partition("#")
        target = (source.parent / name).resolve() if name else source
        if not target.exists():
            return match[0]  # the build names it
        if target in PLACES:
            found = PLACES[target]
        elif target.is_relative_to(DOCS):
            found = target.relative_to(DOCS).as_posix()
        elif repository:
            return f"[{match[1]}]({repository.rstrip('/')}/blob/HEAD/{target.relative_to(ROOT).as_posix()})"
        else:
            return match[1]
        return f"[{match[1]}]({os.path.relpath(found, Path(place).parent)}{mark}{anchor})"

    return _LINK.sub(link, text)
