"""What a package index shows of the project, with links if REPOSITORY_URL says where the repository is."""

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\[((?:`[^`]*`|[^\]])*)\]\((?!https?://)([^)]+)\)")


class ProjectPage(MetadataHookInterface):
    """Makes README and links of a release absolute; without an address relative links become plain text."""

    def update(self, metadata: dict) -> None:
        """Set readme and urls."""
        repository = os.environ.get("REPOSITORY_URL", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text("utf-8")
        if not repository:
            text = (
                LINK.sub(r"\1", text) + "\nThe pages are in the folder `docs` of the source distribution.\n"
            )
            metadata["readme"] = {"content-type": "text/markdown", "text": text}
            return
        tree = f"{repository}/blob/v{metadata['version']}"
        text = LINK.sub(rf"[\1]({tree}/\2)", text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        metadata["urls"] = {
            "Source": repository,
            "Documentation": f"{tree}/docs/index.md",
            "Changelog": f"{tree}/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }
