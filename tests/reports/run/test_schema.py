import json
from pathlib import Path

from evalfarm.contracts.verdict import RunSummary
from evalfarm.reports.run.schema import summary_schema

STORED = Path(__file__).parents[3] / "docs" / "reference" / "run-summary.schema.json"


def test_the_stored_schema_is_current() -> None:
    assert STORED.read_text(encoding="utf-8") == summary_schema(), f"write summary_schema() to {STORED.name} again"


def test_the_schema_is_of_the_document_that_is_printed(summary: RunSummary) -> None:
    schema = json.loads(summary_schema())
    printed = json.loads(summary.model_dump_json())
    assert set(schema["properties"]) == set(printed)
    assert schema["additionalProperties"] is False
