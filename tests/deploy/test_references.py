"""What the Kubernetes files name of one another is there: a reference that leads nowhere is found."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

Document = dict[str, Any]
#: Secrets that docs/deployment.md has one make, as they are no files of the deployment.
SECRETS = {"redis-users", "worker", "scheduler", "beat", "exporter", "web"}


def kustomizations(folder: Path) -> Iterator[tuple[Path, Document]]:
    """A folder's kustomization and those that it takes in."""
    told = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    yield folder, told
    for name in told.get("resources", ()):
        if (folder / name).is_dir():
            yield from kustomizations(folder / name)


def dangling(folder: Path) -> list[str]:
    """Every reference of a kustomization and of its documents that leads nowhere."""
    known = list(kustomizations(folder))
    files = [(at / name, f"resource {name}") for at, told in known for name in told.get("resources", ())]
    made = [maker for _, told in known for maker in told.get("configMapGenerator", ())]
    files += [
        (at / name, f"file {name}")
        for at, told in known
        for maker in told.get("configMapGenerator", ())
        for name in maker.get("files", ())
    ]
    missing = [f"{what} is not there" for path, what in files if not path.exists()]
    documents = [
        one
        for path, _ in files
        if path.suffix == ".yaml" and path.is_file()
        for one in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    ]
    names = {kind: {one["metadata"]["name"] for one in documents if one["kind"] == kind} for kind in _kinds(documents)}
    names["ConfigMap"] = names.get("ConfigMap", set()) | {maker["name"] for maker in made}
    images = {image["name"] for _, told in known for image in told.get("images", ())}
    return missing + [told for one in documents for told in _of(one, names, images)]


def _kinds(documents: list[Document]) -> set[str]:
    return {one["kind"] for one in documents}


def _of(one: Document, names: dict[str, set[str]], images: set[str]) -> Iterator[str]:
    name, spec = one["metadata"]["name"], one.get("spec", {})
    if one["kind"] == "StatefulSet" and spec["serviceName"] not in names["Service"]:
        yield f"{name}: there is no service {spec['serviceName']}"
    if one["kind"] == "ScaledObject" and spec["scaleTargetRef"]["name"] not in names["Deployment"]:
        yield f"{name}: there is no deployment {spec['scaleTargetRef']['name']}"
    if "template" in spec:
        yield from (f"{name}: {told}" for told in _of_pod(one, names, images))


def _of_pod(one: Document, names: dict[str, set[str]], images: set[str]) -> Iterator[str]:
    pod = one["spec"]["template"]["spec"]
    volumes = {volume["name"]: volume for volume in pod.get("volumes", ())}
    claimed = {claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", ())}
    for volume in volumes.values():
        if "secret" in volume and volume["secret"]["secretName"] not in SECRETS:
            yield f"nobody makes the secret {volume['secret']['secretName']}"
        if "configMap" in volume and volume["configMap"]["name"] not in names["ConfigMap"]:
            yield f"there is no ConfigMap {volume['configMap']['name']}"
    for container in pod["containers"]:
        ports = {port["name"] for port in container.get("ports", ())}
        yield from (
            f"there is no ConfigMap {source['configMapRef']['name']}"
            for source in container.get("envFrom", ())
            if source["configMapRef"]["name"] not in names["ConfigMap"]
        )
        mounts = {mount["name"] for mount in container.get("volumeMounts", ())}
        yield from (f"there is no volume {lost}" for lost in sorted(mounts - set(volumes) - claimed))
        yield from (f"nothing mounts the volume {unused}" for unused in sorted(set(volumes) - mounts))
        for probe in ("livenessProbe", "readinessProbe"):
            asked = container.get(probe, {}).get("httpGet") or container.get(probe, {}).get("tcpSocket")
            if asked and asked["port"] not in ports:
                yield f"there is no port {asked['port']}"
        if ":" not in container["image"] and container["image"] not in images:
            yield f"no version of the image {container['image']} is chosen"


def test_everything_that_is_named_is_there(root: Path) -> None:
    assert dangling(root / "deploy/kubernetes") == []


@pytest.mark.parametrize("user", sorted(SECRETS))
def test_the_page_says_how_each_secret_is_made(root: Path, user: str) -> None:
    page = (root / "docs/deployment.md").read_text(encoding="utf-8")
    assert f"secret generic {user} " in page or f"`{user}`" in page


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("kubernetes/kustomization.yaml", "- workers.yaml", "- worker.yaml", "resource worker.yaml is not there"),
        ("kubernetes/kustomization.yaml", "- ../schedules", "- ../schedule", "resource ../schedule is not there"),
        ("kubernetes/kustomization.yaml", "- name: farm", "- name: farms", "beat: there is no ConfigMap farm"),
        (
            "kubernetes/kustomization.yaml",
            "- name: evalfarm",
            "- name: evilfarm",
            "beat: no version of the image evalfarm is chosen",
        ),
        ("schedules/kustomization.yaml", "- evalfarm.toml", "- farm.toml", "file farm.toml is not there"),
        (
            "kubernetes/services.yaml",
            "configMap: {name: schedules}",
            "configMap: {name: schedule}",
            "beat: there is no ConfigMap schedule",
        ),
        (
            "kubernetes/services.yaml",
            "{secretName: web,",
            "{secretName: webb,",
            "web: nobody makes the secret webb",
        ),
        (
            "kubernetes/services.yaml",
            "tcpSocket: {port: http}",
            "tcpSocket: {port: https}",
            "web: there is no port https",
        ),
        (
            "kubernetes/workers.yaml",
            "{name: home, mountPath",
            "{name: house, mountPath",
            "worker-interactive: there is no volume house",
        ),
        (
            "kubernetes/scaling.yaml",
            "scaleTargetRef: {name: worker-nightly}",
            "scaleTargetRef: {name: nightly}",
            "worker-nightly: there is no deployment nightly",
        ),
        ("kubernetes/redis.yaml", "serviceName: redis", "serviceName: redys", "redis: there is no service redys"),
    ],
)
def test_a_reference_that_leads_nowhere_is_found(
    root: Path, tmp_path: Path, file: str, old: str, new: str, told: str
) -> None:
    for name in ("kubernetes", "schedules"):
        shutil.copytree(root / "deploy" / name, tmp_path / name)
    text = (tmp_path / file).read_text(encoding="utf-8")
    assert old in text
    (tmp_path / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    assert told in dangling(tmp_path / "kubernetes")
