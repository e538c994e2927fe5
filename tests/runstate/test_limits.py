from pathlib import Path

import pytest

from evalfarm.errors import UsageError
from evalfarm.runstate import Limits, ModelLimits, load_limits

HINT = "docs/guides/limits-and-money.md shows a file of limits; unset EVALFARM_LIMITS to run without"


def written(folder: Path, text: str) -> Path:
    path = folder / "limits.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_gives_each_model_its_limits(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[models."gpt-5"]\nconcurrency = 8\nrequests_per_minute = 500\n\n[models.slow]\ntokens_per_minute = 2.5e5\n',
    )
    limits = load_limits(path)
    assert limits == Limits(
        models={
            "gpt-5": ModelLimits(concurrency=8, requests_per_minute=500.0),
            "slow": ModelLimits(tokens_per_minute=250000.0),
        }
    )
    assert limits.of("gpt-5.1") == ModelLimits()


def test_without_a_file_nothing_is_limited() -> None:
    assert load_limits(None).of("gpt-5") == ModelLimits()


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('[models."gpt-5"]\nconcurrency = "many"\n', ":2", "models.gpt-5.concurrency: Input should be a valid integer"),
        (
            "[models.a]\nconcurrency = 2\n\n[models.b]\n\nconcurrency = 0  # none\n",
            ":6",
            "models.b.concurrency: Input should be greater than or equal to 1",
        ),
        (
            "[models.a]\nrequests_per_minute = -1\n",
            ":2",
            "models.a.requests_per_minute: Input should be greater than 0",
        ),
        ("[models.a]\ntokens_per_minute = nan\n", ":2", "models.a.tokens_per_minute: Input should be a finite number"),
        ("[models.a]\n\nrequests_per_hour = 9\n", ":3", "models.a.requests_per_hour: there is no such limit"),
        ("[limits.a]\nconcurrency = 9\n", ":1", "limits: there is no such limit"),
        ("[models.a]\nconcurrency = true\n", ":2", "models.a.concurrency: Input should be a valid integer"),
        ("[models.a]\nconcurrency = \n", "", "Invalid value (at line 2, column 15)"),
    ],
)
def test_a_limit_that_is_none_is_refused_with_file_and_line(tmp_path: Path, text: str, line: str, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as raised:
        load_limits(path)
    assert str(raised.value) == f"the limits in {path}{line} cannot be used: {problem}\n\nhint: {HINT}"


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as raised:
        load_limits(tmp_path / "none.toml")
    assert raised.value.message == f"the limits in {tmp_path}/none.toml cannot be used: No such file or directory"
