"""The JSON schema of the document that `evalfarm report RUN --json` prints."""

import json

from evalfarm.contracts.verdict import RunSummary


def summary_schema() -> str:
    """The schema of RunSummary as indented JSON, ending with a newline; docs/reference holds a copy."""
    return json.dumps(RunSummary.model_json_schema(), indent=2, ensure_ascii=False) + "\n"
