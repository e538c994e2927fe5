"""`docs/storage.md` is the one place for keys: what a module says that it stores, the page says too."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "storage.md"
KEEPERS = ("store", "nights", "outcomes", "conversations", "judgings", "web.tokens")


@pytest.mark.parametrize("keeper", KEEPERS)
def test_every_key_of_a_module_is_on_the_page(keeper: str) -> None:
    told = importlib.import_module(f"evalfarm.{keeper}").__doc__ or ""
    keys = re.findall(r"^ *([a-z-]+/\S+?),?(?=\s)", plain(told), flags=re.MULTILINE)
    listed = re.findall(r"`([a-z-]+/\S+)`", plain(PAGE.read_text(encoding="utf-8")))
    assert keys
    assert [key for key in keys if not any(covers(known, key) for known in listed)] == []


def plain(text: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", text)


def covers(known: str, key: str) -> bool:
    return key == known or (known.endswith("…") and key.startswith(known[:-1]))
