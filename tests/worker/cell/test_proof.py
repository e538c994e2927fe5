"""A cell is proved as attempts use it; where it does not open, what stands in its way is named."""

import subprocess
import sys
from pathlib import Path

import pytest

from worker.cell.codex_runtime import find_codex
from worker.cell.proof import hindrances, masked_places, prove_cell, what_to_do

PROVE = """
from evalfarm.errors import IsolationUnavailable
from worker.cell.codex_runtime import find_codex
from worker.cell.proof import prove_cell
try:
    print(prove_cell(find_codex(None)))
except IsolationUnavailable as error:
    print(error.message, error.hint, sep="\\n")
"""
ROOT = Path(__file__).parents[3]


def proved_in(*options: str) -> list[str]:
    """What is found in a container of these options, which is a real one: its message and its hint."""
    around = [str(find_codex(None).bwrap), "--unshare-user", "--bind", "/", "/", "--dev-bind", "/dev", "/dev", *options]
    done = subprocess.run([*around, sys.executable, "-c", PROVE], cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.slow
def test_a_cell_and_the_product_s_own_sandbox_in_it_are_both_tried() -> None:
    assert prove_cell(find_codex(None)) == "a cell opens, and Codex's own sandbox in it"


@pytest.mark.slow
def test_where_user_namespaces_are_not_allowed_it_is_said_which_setting_allows_them() -> None:
    message, hint = proved_in("--proc", "/proc", "--disable-userns")
    assert message.startswith("this machine does not allow the namespaces of an isolated cell: bwrap: ")
    assert hint.startswith("allow more user namespaces: sysctl user.max_user_namespaces=10000")


@pytest.mark.slow
def test_where_proc_has_masked_places_they_are_named() -> None:
    message, hint = proved_in("--proc", "/proc", "--tmpfs", "/proc/fs")
    assert message.endswith("bwrap: Can't mount proc on /newroot/proc: Operation not permitted")
    assert "something is mounted over /proc/" in hint
    assert hint.endswith(": systempaths=unconfined (Kubernetes: procMount Unmasked)")


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, []),
        (
            {
                "sys/user/max_user_namespaces": "96364\n",
                "sys/kernel/unprivileged_userns_clone": "1\n",
                "sys/kernel/apparmor_restrict_unprivileged_userns": "0\n",
                "self/status": "Name:\tsh\nSeccomp:\t0\n",
                "self/attr/current": "unconfined\n",
            },
            [],
        ),
        (
            {"sys/user/max_user_namespaces": "0\n"},
            ["allow more user namespaces: sysctl user.max_user_namespaces=10000"],
        ),
        (
            {"sys/kernel/unprivileged_userns_clone": "0\n"},
            ["allow them to everybody: sysctl kernel.unprivileged_userns_clone=1"],
        ),
        (
            {"sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"},
            ["keep AppArmor from refusing them: sysctl kernel.apparmor_restrict_unprivileged_userns=0"],
        ),
        (
            {"self/status": "Name:\tsh\nSeccomp:\t2\nSeccomp_filters:\t1\n"},
            ["a seccomp filter is on: seccomp=unconfined (Kubernetes: seccompProfile Unconfined)"],
        ),
        (
            {"self/attr/current": "docker-default (enforce)\n"},
            [
                "the AppArmor profile docker-default (enforce) is on: apparmor=unconfined "
                "(Kubernetes: appArmorProfile Unconfined)"
            ],
        ),
        (
            {"self/mountinfo": "7 1 0:2 / /proc/kcore rw - tmpfs tmpfs rw\n"},
            ["something is mounted over /proc/kcore: systempaths=unconfined (Kubernetes: procMount Unmasked)"],
        ),
    ],
)
def test_each_hindrance_is_known_by_what_the_kernel_shows_of_it(
    tmp_path: Path, files: dict[str, str], told: list[str]
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert hindrances(tmp_path) == told
    assert what_to_do("EPERM", tmp_path) == (
        told[0] if told else "docs/isolation.md says what a cell needs of the kernel"
    )


def test_a_machine_s_own_mounts_in_proc_are_in_nobody_s_way() -> None:
    told = "".join(f"7 1 0:2 / {place} rw - proc proc rw\n" for place in ("/", "/proc", "/proc/sys/fs/binfmt_misc"))
    assert masked_places(told) == []
    assert masked_places(told + "".join(f"7 1 0:2 / /proc/{one} ro - x x ro\n" for one in "abcd")) == [
        "/proc/a",
        "/proc/b",
        "/proc/c",
    ]
