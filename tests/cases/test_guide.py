import re
from pathlib import Path

import pytest

from cases.answer_functions import load_functions
from cases.loader import load_suite
from evalfarm.contracts.answer import FACT_KINDS

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "your-plugin.md"
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
BESIDE = ("server.py", "server_v2.py", "server.js", "data/orders.json", "my-plugin/.codex-plugin/plugin.json")


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.split()[1])
def test_every_suite_of_the_guide_loads(tmp_path: Path, block: str) -> None:
    for name in BESIDE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    path = tmp_path / "my-suite.yaml"
    path.write_text(block)
    assert load_suite(str(path)).suite.suite == block.split()[1]


def test_the_guide_shows_every_field_of_an_expectation_at_work() -> None:
    fields = ("tools", "never", "arguments", "results", "field", "highest", "without", "exactly", "includes", "within")
    assert [field for field in fields if not any(f"{field}:" in block for block in BLOCKS)] == []


ROUTE_AND_ANSWER = GUIDE.with_name("route-and-answer.md").read_text(encoding="utf-8")


def block_of(language: str) -> str:
    """The first block in a language of the guide on route and answer."""
    found = re.search(rf"^```{language}\n(.*?)^```$", ROUTE_AND_ANSWER, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_suite_of_the_guide_on_route_and_answer_loads_with_what_lies_beside_it(tmp_path: Path) -> None:
    for name, text in {
        "desk.yaml": block_of("yaml"),
        "fixtures.json": block_of("json"),
        "answers.py": block_of("python"),
        "server.py": "",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    loaded = load_suite(str(tmp_path / "desk.yaml"))
    (check,) = load_functions(loaded.suite, loaded.folder).values()
    assert [check("It is final sale.", {"DEMO-102": {}}), check("It is final sale.", {})] == [True, None]


def test_the_guide_on_route_and_answer_names_every_kind_of_fact() -> None:
    assert [kind for kind in FACT_KINDS if f"| `{kind}`" not in ROUTE_AND_ANSWER] == []
