"""The API's description, held against the API by requests that it allows and by requests that it does not."""

from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode

from evalfarm.web.openapi import document

OPERATIONS = [path for path, methods in document()["paths"].items() for _ in methods]
BOUNDED = settings(
    max_examples=12,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory, farm_in: Any) -> Any:
    farm = farm_in(tmp_path_factory.mktemp("described"))
    farm.add_run("shop-1")
    headers = {"Authorization": f"Bearer {farm.token()}"}
    schema = schemathesis.openapi.from_asgi("/api/v1/openapi.json", farm.serve().app, headers=headers)
    return farm, schema, headers


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("path", OPERATIONS)
def test_every_request_is_answered_as_the_description_says(described: Any, path: str, mode: GenerationMode) -> None:
    farm, schema, headers = described
    operation = schema[path]["GET"]

    @BOUNDED
    @given(case=operation.as_strategy(generation_mode=mode))
    def holds(case: Any) -> None:
        farm.clock.now_s += 60.0  # a check comes with wrong tokens, and ten within a minute would end it
        case.call_and_validate(headers=headers)

    holds()
