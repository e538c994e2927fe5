"""The programs that suites bring along, as modules."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def program() -> Callable[[Path], ModuleType]:
    """Loads a program of a suite as a module, without running it as a program."""

    def load(path: Path) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}".replace("-", "_"), path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="session")
def interpreter() -> str:
    """What a suite's `python` stands for."""
    return sys.executable
