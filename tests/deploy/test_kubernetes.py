"""The Kubernetes files, held to what they promise; where kubectl is installed, as it puts them together."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from evalfarm.cli.main import cli
from evalfarm.contracts.suite import Suite
from evalfarm.exporter import catalogue
from evalfarm.exporter.families import Metric
from evalfarm.settings import load_settings, variables
from scheduler.feeder import SET_UP_S
from scheduler.nightly.file import read_schedules

Documents = list[dict[str, Any]]
CELLS = {"worker-interactive", "worker-nightly", "beat"}


@pytest.fixture(scope="module")
def documents(root: Path) -> Documents:
    folder = root / "deploy/kubernetes"
    names = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    files = [folder / name for name in names if name.endswith(".yaml")]
    return [one for file in files for one in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def of_kind(documents: Documents, *kinds: str) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one for one in documents if one["kind"] in kinds}


def pods(documents: Documents) -> dict[str, dict[str, Any]]:
    """The pod template's spec of everything that runs, by its name."""
    return {
        name: one["spec"]["template"]["spec"] for name, one in of_kind(documents, "Deployment", "StatefulSet").items()
    }


def test_every_service_runs_a_command_that_exists(documents: Documents) -> None:
    group = click.Context(cli, info_name="evalfarm")
    for name in of_kind(documents, "Deployment"):
        (container,) = pods(documents)[name]["containers"]
        command = cli.get_command(group, container["args"][0])
        assert command is not None
        command.make_context(container["args"][0], list(container["args"][1:]), parent=group)
        assert str(container["ports"][0]["containerPort"]) in container["args"]


def test_nothing_runs_as_root_can_gain_rights_or_takes_more_than_its_share(documents: Documents) -> None:
    for name, pod in pods(documents).items():
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["automountServiceAccountToken"] is False, name
        for container in pod["containers"]:
            allowed = container["securityContext"]
            assert allowed["allowPrivilegeEscalation"] is False, name
            assert allowed["readOnlyRootFilesystem"] is True, name
            assert allowed["capabilities"] == {"drop": ["ALL"]}, name
            assert set(container["resources"]["limits"]) == {"cpu", "memory"}, name


def test_only_what_opens_cells_is_loosened_and_that_in_a_user_namespace(documents: Documents) -> None:
    for name, pod in pods(documents).items():
        loose = pod["securityContext"]["seccompProfile"]["type"] == "Unconfined"
        unmasked = pod["containers"][0]["securityContext"].get("procMount") == "Unmasked"
        assert (loose, unmasked, pod.get("hostUsers") is False) == (name in CELLS,) * 3, name


def test_a_worker_that_is_stopped_may_finish_its_trials(documents: Documents) -> None:
    for name in ("worker-interactive", "worker-nightly"):
        patience = pods(documents)[name]["terminationGracePeriodSeconds"]
        assert patience > Suite.model_fields["attempt_timeout_s"].default + SET_UP_S


def test_what_selects_pods_selects_pods_that_there_are(documents: Documents) -> None:
    labels = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in of_kind(documents, "Deployment", "StatefulSet").values()
    ]
    for one in documents:
        wanted = one["spec"].get("selector") if one["kind"] in ("Service", "PodDisruptionBudget") else None
        if wanted is not None:
            wanted = wanted.get("matchLabels", wanted)
            assert any(wanted.items() <= label.items() for label in labels), one["metadata"]["name"]
    assert {name for name in of_kind(documents, "PodDisruptionBudget")} == {
        "worker-interactive",
        "worker-nightly",
        "scheduler",
        "redis",
    }


def test_workers_are_scaled_by_metrics_that_the_exporter_has(documents: Documents) -> None:
    metrics = {one.name for one in vars(catalogue).values() if isinstance(one, Metric)}
    scaled = of_kind(documents, "ScaledObject")
    assert set(scaled) == {"worker-interactive", "worker-nightly"}
    for name, one in scaled.items():
        (trigger,) = one["spec"]["triggers"]
        assert one["spec"]["scaleTargetRef"]["name"] == name
        assert {"evalfarm_trials_waiting", "evalfarm_trials_in_flight"} <= metrics
        assert f'evalfarm_trials_waiting{{queue="{name.removeprefix("worker-")}"}}' in trigger["metadata"]["query"]


def test_nothing_may_talk_but_as_it_is_said(documents: Documents) -> None:
    policies = of_kind(documents, "NetworkPolicy")
    assert policies["nothing"]["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    outside = policies["to-redis-and-outside"]["spec"]["egress"]
    assert [{port["port"] for port in rule["ports"]} for rule in outside] == [{6379}, {443}]


def test_the_settings_of_the_farm_can_be_used(root: Path) -> None:
    said = yaml.safe_load((root / "deploy/kubernetes/kustomization.yaml").read_text(encoding="utf-8"))
    (farm,) = said["configMapGenerator"]
    given = dict(pair.split("=", 1) for pair in farm["literals"])
    assert set(given) <= set(variables()) | {"AWS_REGION"}
    assert load_settings(given).store_url == "s3://evalfarm/farm"


def test_the_schedules_that_are_deployed_can_be_read(root: Path) -> None:
    declared = read_schedules(root / "deploy/schedules/evalfarm.toml")
    assert set(declared.said.schedules) == {"bls-nightly"}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed here")
def test_kubectl_puts_them_together(root: Path, documents: Documents) -> None:
    built = subprocess.run(
        ["kubectl", "kustomize", str(root / "deploy/kubernetes")], capture_output=True, text=True, check=True
    )
    whole = [one for one in yaml.safe_load_all(built.stdout)]
    assert len(whole) == len(documents) + 2
    assert {one["metadata"].get("namespace", "evalfarm") for one in whole} == {"evalfarm"}
    names = [one["metadata"]["name"] for one in whole if one["kind"] == "ConfigMap"]
    assert {name.rpartition("-")[0] for name in names} == {"farm", "schedules"}
    assert all(name in built.stdout.replace(f"name: {name}\n  namespace", "") for name in names)  # and are referred to
