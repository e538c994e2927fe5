"""What breaks here, and what it breaks."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from evalfarm.contracts.run import Plan
from tests.faults.farm import Farm, farm, plan_of
from tests.faults.machine import ROOT
from tests.faults.s3 import Bucket, bucket_of, s3_server


@pytest.fixture(scope="session")
def moto() -> Iterator[str]:
    with s3_server() as server:
        yield server


@pytest.fixture
def bucket(moto: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """An empty bucket behind a proxy, and the environment that points at it."""
    with bucket_of(moto) as bucket:
        for name, value in bucket.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("AWS_TIMEOUT", "1 second")
        yield bucket


@pytest.fixture
def start_farm(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Farm]]:
    """Opens farms, each with a run of its own: eight cases at `loop` and at `direct`, unless told otherwise."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # for what the scheduler starts from this process
    with ExitStack() as stack:

        def start(plan: Plan | None = None, **options: Any) -> Farm:
            return stack.enter_context(farm(tmp_path_factory.mktemp("farm"), plan or plan_of(8), **options))

        yield start
