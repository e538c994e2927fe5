import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cases.suite_files import is_suite
from evalfarm.errors import UsageError
from evalfarm.plain_files import read_plain
from evalfarm.prices import load_prices
from evalfarm.runstate.limits import load_limits
from evalfarm.settings import take_secrets
from scheduler.nightly.file import read_schedules


@pytest.fixture(params=["a device", "a pipe"])
def no_file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What is no plain file, under the name of a secret; whoever reads it to its end waits for ever."""
    path = tmp_path / "named/OPENAI_API_KEY"
    path.parent.mkdir()
    if request.param == "a device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(path)
    return path


def test_a_plain_file_is_read_to_its_end_through_a_link_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\r\n\xff" * 100_000)
    (tmp_path / "link").symlink_to("file")
    assert read_plain(tmp_path / "link") == b"a\r\n\xff" * 100_000


@pytest.mark.parametrize(
    ("read", "told"),
    [
        (load_prices, "the price table {path} cannot be used: it is no plain file"),
        (load_limits, "the limits in {path} cannot be used: it is no plain file"),
        (read_schedules, "{path} cannot be read: it is no plain file"),
        (
            lambda path: take_secrets({"EVALFARM_SECRETS": str(path.parent)}),
            "the secret OPENAI_API_KEY cannot be read from {path}: it is no plain file",
        ),
    ],
)
def test_what_a_setting_names_is_a_plain_file_or_refused_at_once(
    read: Callable[[Path], object], told: str, no_file: Path
) -> None:
    with pytest.raises(UsageError) as raised:
        read(no_file)
    assert raised.value.message == told.format(path=no_file)


def test_a_pipe_beside_a_suite_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert not is_suite(tmp_path / "pipe.yaml")


def test_a_secret_whose_line_ends_as_windows_ends_it_is_read_without_the_ending(tmp_path: Path) -> None:
    (tmp_path / "OPENAI_API_KEY").write_bytes(b"sk-1\r\n")
    environ = {"EVALFARM_SECRETS": str(tmp_path)}
    take_secrets(environ)
    assert environ["OPENAI_API_KEY"] == "sk-1"
