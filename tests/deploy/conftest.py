"""The files that a farm is deployed with, read as what they are."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def compose() -> dict[str, Any]:
    """docker-compose.yml, its anchors and merges resolved."""
    read: dict[str, Any] = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return read


@pytest.fixture(scope="session")
def dockerfile() -> list[tuple[str, str]]:
    """The image's instructions in order: (instruction, the rest of its line)."""
    text = (ROOT / "deploy/Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(found[1], found[2]) for line in lines if (found := re.fullmatch(r"([A-Z]+)\s+(.*)", line))]
