"""A suite's regression set: one JSON line for each resolved failure, in a file beside the suite. Only added to."""

from pathlib import Path

from pydantic import ValidationError

from evalfarm.contracts.regression import Regression
from evalfarm.errors import SuiteError, UsageError

ENDING = ".regressions.jsonl"


def regressions_path(suite_file: Path) -> Path:
    """Where the regression set of a suite's file lies: `suite.regressions.jsonl` beside `suite.yaml`."""
    return suite_file.with_suffix(ENDING)


def read_regressions(path: Path) -> tuple[Regression, ...]:
    """The set, in the order in which it grew; empty where there is none. Raises SuiteError for a line that is none."""
    if not path.is_file():
        return ()
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            found.append(Regression.model_validate_json(line))
        except ValidationError as error:
            why = error.errors(include_url=False)[0]["msg"]
            hint = "take the file from version control again: lines are only added to it"
            raise SuiteError(f"{path}:{number}: this is no regression: {why}", hint) from error
    return tuple(found)


def add_regression(path: Path, regression: Regression) -> None:
    """Add one. Raises UsageError where this trial is in the set already."""
    for known in read_regressions(path):
        if (known.failed.run, known.failed.trial) == (regression.failed.run, regression.failed.trial):
            raise UsageError(
                f"trial {known.failed.trial} of run {known.failed.run!r} is in {path} already",
                "it stays as it was written",
            )
    with path.open("a", encoding="utf-8") as file:
        file.write(regression.model_dump_json() + "\n")
