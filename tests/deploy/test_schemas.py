"""The files of a deployment, held against the schemas that Kubernetes, KEDA and the Compose Specification publish."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.exceptions import ValidationError

Document = dict[str, Any]
SCHEMAS = Path(__file__).parent / "schemas"
KUBERNETES = json.loads((SCHEMAS / "kubernetes-1.33.json").read_text(encoding="utf-8"))
KEDA = json.loads((SCHEMAS / "keda-scaledobject.json").read_text(encoding="utf-8"))
COMPOSE = json.loads((SCHEMAS / "compose.json").read_text(encoding="utf-8"))


def mistakes(document: Document) -> list[str]:
    """What a Kubernetes document has that its kind's schema does not allow: where and why."""
    kind = f"{document['apiVersion']} {document['kind']}"
    if kind == "keda.sh/v1alpha1 ScaledObject":
        return told(Draft202012Validator(KEDA).iter_errors(document))
    if kind not in KUBERNETES["kinds"]:
        return [f"there is no schema of {kind}"]
    whole = KUBERNETES["kinds"][kind] | {"$defs": KUBERNETES["$defs"]}
    return told(Draft202012Validator(whole).iter_errors(document))


def told(errors: Iterator[ValidationError]) -> list[str]:
    return [f"{'.'.join(str(step) for step in error.absolute_path)}: {error.message}" for error in errors]


@pytest.fixture(scope="module")
def documents(root: Path) -> list[Document]:
    files = sorted((root / "deploy/kubernetes").glob("*.yaml"))
    read = [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8"))]
    return [one for one in read if one["kind"] != "Kustomization"]


@pytest.mark.parametrize("schema", [KUBERNETES, KEDA, COMPOSE], ids=["kubernetes", "keda", "compose"])
def test_a_schema_says_where_it_comes_from_and_is_one(schema: Document) -> None:
    assert re.search(r"Apache-2\.0", schema["$comment"])
    assert re.search(r"\d+\.\d+\.\d+|at [0-9a-f]{40}", schema["$comment"])
    (Draft7Validator if schema is COMPOSE else Draft202012Validator).check_schema(schema)


def test_every_kubernetes_document_is_as_its_kind_is(documents: list[Document]) -> None:
    assert len(documents) > 20
    found = {(one["kind"], one["metadata"]["name"]): mistakes(one) for one in documents}
    assert {name: told for name, told in found.items() if told} == {}


def test_the_compose_file_is_one(compose: Document) -> None:
    assert told(Draft7Validator(COMPOSE).iter_errors(compose)) == []


def misspelt(where: str, name: str) -> Callable[[Any], None]:
    """A field at the place is spelt wrong."""

    def spoil(document: Any) -> None:
        holder = at(document, where)
        holder[name + "x"] = holder.pop(name)

    return spoil


def put(where: str, name: str, value: object) -> Callable[[Any], None]:
    """A field at the place gets a value of the wrong type."""

    def spoil(document: Any) -> None:
        assert name in at(document, where)
        at(document, where)[name] = value

    return spoil


def at(document: Any, where: str) -> Any:
    for step in where.split("."):
        document = document[int(step) if step.isdecimal() else step]
    return document


POD = "spec.template.spec"


@pytest.mark.parametrize(
    ("kind", "spoil", "place"),
    [
        ("Namespace", misspelt("metadata", "labels"), "metadata: .*'labelsx' was unexpected"),
        ("Service", misspelt("spec", "selector"), "spec: .*'selectorx' was unexpected"),
        ("Service", put("spec.ports.0", "port", "http"), r"spec\.ports\.0\.port: 'http' is not"),
        ("Deployment", misspelt(POD, "hostUsers"), f"{POD}: .*'hostUsersx' was unexpected"),
        ("Deployment", misspelt(f"{POD}.securityContext", "runAsNonRoot"), "securityContext: .*'runAsNonRootx'"),
        ("Deployment", misspelt(f"{POD}.containers.0.securityContext", "procMount"), "securityContext: .*'procMountx'"),
        ("Deployment", put(f"{POD}.containers.0", "args", "worker"), r"containers\.0\.args: 'worker' is not"),
        ("Deployment", put(f"{POD}.volumes.2.secret", "defaultMode", "0440"), "defaultMode: '0440' is not"),
        ("StatefulSet", misspelt("spec", "volumeClaimTemplates"), "spec: .*'volumeClaimTemplatesx' was unexpected"),
        ("StatefulSet", misspelt(f"{POD}.containers.0.resources", "limits"), "resources: .*'limitsx'"),
        ("PodDisruptionBudget", misspelt("spec", "maxUnavailable"), "spec: .*'maxUnavailablex' was unexpected"),
        ("NetworkPolicy", misspelt("spec", "policyTypes"), "spec: .*'policyTypesx' was unexpected"),
        ("ScaledObject", misspelt("spec", "scaleTargetRef"), "spec: 'scaleTargetRef' is a required property"),
        ("ScaledObject", put("spec", "maxReplicaCount", "20"), r"spec\.maxReplicaCount: '20' is not of type"),
        ("ScaledObject", misspelt("spec.triggers.0.metadata", "query"), "metadata: 'query' is a required property"),
        ("ScaledObject", put("spec.triggers.0.metadata", "threshold", 8), "threshold: 8 is not of type 'string'"),
    ],
)
def test_a_typo_in_a_kubernetes_document_is_found(
    documents: list[Document], kind: str, spoil: Callable[[Any], None], place: str
) -> None:
    # Workers are the deployments that have every field.
    chosen = [one for one in documents if one["kind"] == kind and one["metadata"]["name"] != "nothing"]
    spoilt = copy.deepcopy(next((one for one in chosen if one["metadata"]["name"].startswith("worker")), chosen[0]))
    spoil(spoilt)
    found = mistakes(spoilt)
    assert [one for one in found if re.search(place, one)], found


def test_a_kind_that_the_schemas_do_not_have_is_said(documents: list[Document]) -> None:
    assert mistakes(documents[0] | {"kind": "Deploymnt"}) == [
        f"there is no schema of {documents[0]['apiVersion']} Deploymnt"
    ]


@pytest.mark.parametrize(
    ("spoil", "place"),
    [
        (misspelt("services.worker", "security_opt"), r"services\.worker: .*'security_optx' does not match"),
        (misspelt("services.worker", "stop_grace_period"), r"services\.worker: .*'stop_grace_periodx'"),
        (misspelt("services.redis.healthcheck", "retries"), r"services\.redis\.healthcheck: .*'retriesx'"),
        (misspelt("services.web.deploy.resources.limits", "memory"), r"resources\.limits: .*'memoryx'"),
        (put("services.web", "ports", "127.0.0.1:8080:8080"), r"services\.web\.ports: "),
        (put("services.beat", "secrets", {"team_webhook": 1}), r"services\.beat\.secrets: "),
        (misspelt("secrets.openai_key", "file"), r"secrets\.openai_key: .*'filex'"),
        (misspelt("services.web.depends_on.store", "condition"), r"services\.web\.depends_on"),
    ],
)
def test_a_typo_in_the_compose_file_is_found(compose: Document, spoil: Callable[[Any], None], place: str) -> None:
    spoilt = copy.deepcopy(compose)
    spoil(spoilt)
    found = told(Draft7Validator(COMPOSE).iter_errors(spoilt))
    assert [one for one in found if re.search(place, one)], found
