"""The documents, cut into what can be checked of them."""

import re
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", flags=re.MULTILINE | re.DOTALL)


class Page(NamedTuple):
    """One Markdown file."""

    path: Path
    text: str

    @property
    def prose(self) -> str:
        """The text without its fenced blocks."""
        return _FENCE.sub("", self.text)

    def blocks(self, language: str) -> list[str]:
        return [found[2] for found in _FENCE.finditer(self.text) if found[1] == language]

    def anchors(self) -> set[str]:
        """What its headings can be linked as, in the way of the sites that show Markdown."""
        headings = re.findall(r"^#+ (.+)$", self.prose, flags=re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def documents() -> dict[str, Page]:
    """Every Markdown file of the repository that is for readers: path relative to the root -> page."""
    paths = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    return {str(path.relative_to(ROOT)): Page(path, path.read_text(encoding="utf-8")) for path in sorted(paths)}
