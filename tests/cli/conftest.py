"""Commands run as a user runs them: by their words, to an exit code and what was printed."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cases.loader import shipped_suites
from evalfarm.cli.main import main


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def evalfarm(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Runs `evalfarm WORDS…` in this process, to its end."""

    def run(*words: str) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as exit_:
            main(list(words))
        printed = capsys.readouterr()
        return Ended(int(exit_.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def bls(tmp_path: Path) -> Path:
    """A copy of the shipped suite `bls` without its lock, to be spoilt: the path of its YAML file."""
    shipped = shipped_suites()["bls"]
    copy = shutil.copytree(shipped.parent, tmp_path / "suite", ignore=shutil.ignore_patterns("*.lock"))
    return Path(copy) / shipped.name
