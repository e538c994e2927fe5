"""What breaks here, and what it breaks."""

from collections.abc import Callable, Generator, Iterator
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


_FARMS = pytest.StashKey[list[Farm]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With a test that failed it is told how its farms stood then."""
    report = yield
    if report.when == "call" and report.failed:
        report.sections += [(f"the farm in {farm.root}", farm.account()) for farm in item.stash.get(_FARMS, [])]
    return report


@pytest.fixture
def start_farm(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Farm]]:
    """Opens farms, each with a run of its own: eight cases at `loop` and at `direct`, unless told otherwise."""
    farms = request.node.stash[_FARMS] = []
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # for what the scheduler starts from this process
    with ExitStack() as stack:

        def start(plan: Plan | None = None, **options: Any) -> Farm:
            farms.append(stack.enter_context(farm(tmp_path_factory.mktemp("farm"), plan or plan_of(8), **options)))
            return farms[-1]

        yield start
