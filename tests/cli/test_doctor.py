import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.cli.upkeep.doctor import Finding, check_space, examine, model_key
from evalfarm.embedded import embedded_redis
from evalfarm.errors import InfrastructureError
from evalfarm.runstate import connect
from evalfarm.settings import load_settings

CHECKS = ["libraries", "codex", "isolation", "redis", "store", "disk", "suites", "key"]
KEY = "sk-planted-key"


def findings(**environ: str) -> dict[str, Finding]:
    given = {"EVALFARM_HOME": os.environ["EVALFARM_HOME"], **environ}
    return {finding.check: finding for finding in examine(load_settings(given))}


@pytest.mark.slow
def test_a_machine_where_a_simulated_run_can_work(evalfarm: Callable[..., Any], tmp_path: Path) -> None:
    ended = evalfarm("doctor", "--json")
    told = json.loads(ended.out)
    states = {finding["check"]: finding["state"] for finding in told["findings"]}
    assert (ended.code, ended.err, told["ready"]) == (0, "", True)
    assert states == dict.fromkeys(CHECKS, "ok") | {"key": "missing"}
    assert [entry.name for entry in tmp_path.iterdir()] == ["home"]


@pytest.mark.slow
def test_the_terminal_has_one_line_for_each_check_and_what_to_do(evalfarm: Callable[..., Any]) -> None:
    ended = evalfarm("doctor")
    lines = ended.out.splitlines()
    assert [line.split()[1] for line in lines[:-3]] == CHECKS
    assert lines[-3:] == [
        f"{'':19}→ set it where `evalfarm run` and the workers run, and OPENAI_BASE_URL for another provider",
        "",
        "A run with a simulated model can work here.",
    ]


def test_what_does_not_work_is_told_with_what_to_do_and_ends_with_4(
    evalfarm: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALFARM_REDIS_URL", f"unix://{tmp_path}/none.sock?password=planted")
    monkeypatch.setenv("EVALFARM_CODEX_BIN", str(tmp_path / "codex"))
    ended = evalfarm("doctor")
    assert ended.code == 4
    assert f"broken  codex      EVALFARM_CODEX_BIN is {tmp_path}/codex, which is no executable file" in ended.out
    assert "                   → name a Codex binary, or unset it to use the one installed here" in ended.out
    assert f"broken  redis      cannot reach Redis at unix://{tmp_path}/none.sock: " in ended.out
    assert ended.out.endswith("A run with a simulated model cannot work here yet.\n")
    assert "planted" not in ended.out


@pytest.mark.slow
def test_a_redis_that_evicts_is_found_out(tmp_path: Path) -> None:
    with embedded_redis(tmp_path / "other") as url:
        found = findings(EVALFARM_REDIS_URL=url)["redis"]
        assert (found.state, found.found.partition(" ")[0]) == ("ok", "Valkey")
        assert found.found.endswith(f", noeviction ({url})")
        with connect(url) as client:
            client.config_set("maxmemory-policy", "allkeys-lru")
        found = findings(EVALFARM_REDIS_URL=url)["redis"]
    assert found.state == "broken"
    assert found.found.endswith("may evict run state: its maxmemory-policy is allkeys-lru")


def test_a_store_that_cannot_be_written_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    found = findings(EVALFARM_STORE_URL=f"file://{tmp_path}/file/store", EVALFARM_REDIS_URL=f"unix://{tmp_path}/no")
    assert found["store"].state == "broken"
    assert found["store"].found.startswith(f"cannot open file://{tmp_path}/file/store: ")


def test_a_key_is_told_of_and_never_shown() -> None:
    settings = load_settings({"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": "https://me:planted@models.example/v1"})
    assert model_key(settings) == Finding(
        check="key",
        state="ok",
        found="OPENAI_API_KEY is set, for https://models.example/v1 (not tried: that would cost)",
    )


def test_a_disk_that_is_nearly_full_is_told() -> None:
    home = Path("/data")
    assert check_space(home, 500_000_000) == "0.5 GB free for /data"
    with pytest.raises(InfrastructureError) as caught:
        check_space(home, 120_000_000)
    assert str(caught.value) == (
        "only 0.1 GB free for /data\n\nhint: free at least 0.5 GB, or set EVALFARM_HOME to another disk"
    )
