import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from cases.loader import shipped_suites
from docs.generate import REFERENCE, pages

#: Hosts that packages are installed from. The letters stand in brackets so that this file is no finding itself.
REGISTRIES = re.compile(r"pypi[.]org|python[h]osted|npm[j]s|crates[.]io|piwheel[s]|devpi[-]|artifactor[y]")
#: A home folder of somebody's; the sealed cell's own agent is nobody.
HOMES = re.compile(r"(?<![\w.~}-])/(?:home/(?!agent\b)|Users/|roo[t]/)\w+")


def test_no_file_holds_a_path_of_a_developer_s_machine(texts: dict[str, str], root: Path) -> None:
    here = re.compile(rf"(?<![\w.~-]){re.escape(str(root))}\b") if len(root.parts) > 2 else HOMES
    assert {name: found for name, text in texts.items() if (found := HOMES.findall(text) + here.findall(text))} == {}


def test_no_file_names_a_package_registry(texts: dict[str, str]) -> None:
    assert {name: found for name, text in texts.items() if (found := REGISTRIES.findall(text))} == {}


def test_every_locked_package_is_pinned_with_hashes_and_from_nowhere_in_particular(texts: dict[str, str]) -> None:
    lock = texts["requirements.lock"]
    entries = re.split(r"\n(?=\S)", lock.replace("\\\n", " ").strip())
    shape = re.compile(r"[\w.-]+(\[[\w,-]+\])?==[^\s;]+( ;[^-]*)?(\s+--hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in entries if not shape.fullmatch(entry.rstrip())] == []
    assert "://" not in lock


@pytest.mark.parametrize("page", pages())
def test_a_generated_page_is_current(page: str) -> None:
    assert (REFERENCE / page).read_text(encoding="utf-8") == pages()[page], "run `make docs`"


@pytest.mark.parametrize("suite", shipped_suites())
def test_the_schema_of_suites_accepts_the_shipped_ones(suite: str) -> None:
    schema = json.loads(pages()["suite.schema.json"])
    text = shipped_suites()[suite].read_text(encoding="utf-8")
    jsonschema.validate(yaml.safe_load(text), schema)
