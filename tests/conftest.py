"""Every test starts from nothing: no settings of the machine's, its own home, its own working folder."""

import os
from pathlib import Path

import pytest

_OURS = ("EVALFARM_", "OPENAI_")


@pytest.fixture(autouse=True)
def _clean_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("EVALFARM_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
