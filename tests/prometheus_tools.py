"""Prometheus's own programs, from the system's packages: a test that needs one says so where it is missing."""

import os
import shutil

import pytest


def program(*names: str) -> str:
    """The path of the first of these programs that is installed.

    Without any the test is skipped, and says what to install; in continuous integration, where CI is set, it fails.
    """
    for name in names:
        if found := shutil.which(name):
            return found
    told = f"{names[0]} is not installed: on Debian and Ubuntu, apt-get install prometheus prometheus-alertmanager"
    if os.environ.get("CI"):
        pytest.fail(told)
    pytest.skip(told)
