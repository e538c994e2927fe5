import re
from pathlib import Path

import pytest

from cases.loader import load_suite

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
