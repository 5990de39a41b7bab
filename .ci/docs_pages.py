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


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return a page whose links lead somewhere on the site, and whose examples show their file names."""
    place = page.file.src_uri
    source = next((file for file, known in PLACES.items() if known == place), DOCS / place)
    markdown = _COMMENT.sub("", markdown)  # some have what only tests run
    parts, last = [], 0
    for fence in [*_FENCE.finditer(markdown), None]:
        text = markdown[last : fence.start() if fence else None]
        parts.append(_LINK.sub(lambda match: _led(match, source, place, config.repo_url, files), text))
        if fence:
            parts.append(_titled(fence))
            last = fence.end()
    return "".join(parts)


def _titled(fence: re.Match[str]) -> str:
    """Return a block of code with the file that it is as its title, without words for tests."""
    name = re.search(r"\b(?:file|append)=(\S+)", fence[2])
    title = f' title="{name[1]}"' if name else ""
    # what a terminal shows is no text to paste into one
    return f"```{'{.console .no-copy}' if fence[1] == 'console' else fence[1] + title}{fence[3]}"


def _led(link: re.Match[str], source: Path, place: str, repository: str | None, files: Files) -> str:
    """Return a link from `source` as one on the site, into the repository, or as its text alone."""
    name, mark, anchor = link[2].partition("#")
    target = (source.parent / name).resolve() if name else source
    if not target.exists():
        return link[0]  # the build names it
    path = target.relative_to(ROOT).as_posix()
    found = PLACES.get(target, path.removeprefix("docs/"))
    known = files.get_file_from_path(found)
    if known is not None and not known.inclusion.is_excluded():
        return f"[{link[1]}]({os.path.relpath(found, Path(place).parent)}{mark}{anchor})"
    return f"[{link[1]}]({repository.rstrip('/')}/blob/HEAD/{path})" if repository else link[1]
