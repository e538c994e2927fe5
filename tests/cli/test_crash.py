from pathlib import Path

import click
import pytest

from evalfarm.cli.main import guarded
from evalfarm.errors import BrokerUnavailable, EvalFarmError, ExitCode, SuiteError

KEY = "sk-planted-key"


def stumble() -> None:
    raise KeyError(f"{KEY} at redis://:planted-password@queue:6379/0")


def test_an_error_nobody_expected_ends_with_its_own_code_one_message_and_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = guarded(lambda: next(iter(())))
    (log,) = (tmp_path / "home" / "logs").glob("crash-*.log")
    printed = capsys.readouterr()
    assert (code, printed.out) == (ExitCode.INTERNAL, "")
    assert printed.err == (
        "Error: evalfarm itself failed: StopIteration: \n\n"
        f"hint: this is a fault of evalfarm's own; report it with its traceback, which is in {log}\n"
    )
    assert log.read_text(encoding="utf-8").startswith("Traceback (most recent call last):\n")
    assert log.read_text(encoding="utf-8").endswith("StopIteration\n")


def test_neither_message_nor_file_holds_a_secret(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    guarded(stumble)
    (log,) = (tmp_path / "home" / "logs").glob("crash-*.log")
    for text in (capsys.readouterr().err, log.read_text(encoding="utf-8")):
        assert "redis://queue:6379/0" in text
        assert KEY not in text
        assert "planted-password" not in text


def test_without_a_place_for_the_file_the_message_says_so(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("EVALFARM_HOME", str(tmp_path / "file"))
    assert guarded(stumble) == ExitCode.INTERNAL
    told = capsys.readouterr().err
    assert f"\n\nhint: its traceback could not be written to {tmp_path}/file/logs/crash-" in told
    assert told.endswith(": Not a directory\n")
    assert "Traceback" not in told


def test_settings_that_do_not_read_hide_no_crash(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALFARM_STORE_URL", "nowhere")
    assert guarded(stumble) == ExitCode.INTERNAL
    assert Path(".evalfarm/logs").is_dir()
    assert "KeyError" in capsys.readouterr().err


def ending(error: BaseException) -> int:
    def command() -> None:
        raise error

    return guarded(command)


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (SuiteError("no such field", "try another"), 2, "Error: no such field\n\nhint: try another\n"),
        (BrokerUnavailable("no Redis"), 4, "Error: no Redis\n"),
        (EvalFarmError("no luck"), 4, "Error: no luck\n"),
        (click.UsageError("no such option"), 2, "Error: no such option\n"),
        (click.exceptions.Exit(3), 3, ""),
        (click.Abort(), 130, ""),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_every_other_end_has_its_code_and_at_most_one_message(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, told: str
) -> None:
    assert ending(error) == code
    assert capsys.readouterr().err == told


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (3, 3), ("text", 0)])
def test_a_command_that_returns_a_number_ends_with_it(returned: object, code: int) -> None:
    assert guarded(lambda: returned) == code
