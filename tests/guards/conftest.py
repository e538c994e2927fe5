"""What the guards look at: the checkout's own files."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("evalfarm", "cases", "scheduler", "worker", "graders")
#: What tools make; none of it is the repository's own.
_MADE = re.compile(r"__pycache__|build|dist|.*[.]egg-info|[.](git|venv|evalfarm|hypothesis|.*_cache)")


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def modules() -> dict[str, Path]:
    """Every Python file of the product: path relative to the root -> path."""
    found = {path.relative_to(ROOT): path for name in PACKAGES for path in sorted((ROOT / name).rglob("*.py"))}
    return {str(relative): path for relative, path in found.items() if "suites" not in relative.parts}


@pytest.fixture(scope="session")
def texts() -> dict[str, str]:
    """Every text file of the repository: path relative to the root -> its text."""
    return dict(_texts(ROOT))


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.iterdir()):
        if path.is_dir() and not path.is_symlink() and not _MADE.fullmatch(path.name):
            yield from _texts(path)
        elif path.is_file() and not path.is_symlink() and b"\0" not in (data := path.read_bytes()):
            yield str(path.relative_to(ROOT)), data.decode("utf-8", "replace")
