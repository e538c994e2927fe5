"""Rows of conversations for the tests of what many of them add up to."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.made_rows import made_row, made_use

Make = Callable[..., Any]


@pytest.fixture(scope="session")
def row() -> Make:
    """A conversation that succeeded, with the fields given."""
    return made_row


@pytest.fixture(scope="session")
def use() -> Make:
    """One tool's use, with the fields given."""
    return made_use
