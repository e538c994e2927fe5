"""What cannot be done as asked: one message, a documented exit code, no traceback, and nothing stored."""

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalfarm.contracts.suite import Case
from evalfarm.errors import ExitCode, IsolationUnavailable
from worker.cell.cell import check_isolation
from worker.cell.codex_runtime import Codex

Run = Callable[..., Any]
USAGE, INFRASTRUCTURE = int(ExitCode.USAGE), int(ExitCode.INFRASTRUCTURE)
DIRECT = ("--harness", "direct")
CAREFUL = ("--model", "sim-careful")
CHECK_STORE = "check EVALFARM_STORE_URL and the provider's credentials; `evalfarm doctor` tries the store"


def told(message: str, hint: str) -> str:
    return f"Error: {message}\n\nhint: {hint}\n"


def stored(home: Path) -> list[str]:
    return sorted(entry.name for entry in (home / "store" / "runs").glob("*"))


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (
            ("blss", *CAREFUL),
            "no suite 'blss': no shipped suite, file or folder has this name",
            "did you mean 'bls'? shipped suites: bls, bls-108, support, time",
        ),
        (
            ("bls", "--model", "sim-nope"),
            "there is no simulated model 'sim-nope'",
            "the simulated models: sim-careful, sim-flaky, sim-shell, sim-hostile, sim-slow, sim-erratic",
        ),
        (
            ("bls", *CAREFUL, "--harness", "claude"),
            "there is no harness 'claude'",
            "the harnesses: direct, loop, codex",
        ),
        (
            ("bls", *CAREFUL, "--variant", "gilded"),
            "suite 'bls' has no variant 'gilded'",
            "its variants: plain, guided",
        ),
        (
            ("bls", *CAREFUL, "--filter", "mechanism"),
            "'mechanism' is no filter",
            "write TAG=VALUE, as in mechanism=coverage_gap or case=CASE_ID",
        ),
        (
            ("bls", *CAREFUL, "--filter", "mechanics=coverage_gap"),
            "no case of suite 'bls' has a tag 'mechanics'",
            "did you mean 'mechanism'? tags to filter by: case, expected_type, mechanism",
        ),
        (
            ("bls", *CAREFUL, "--filter", "mechanism=gap"),
            "no case of suite 'bls' has mechanism=gap",
            "mechanism is one of ambiguous_concept, ambiguous_default, coverage_gap, headline",
        ),
        (("bls", *CAREFUL, "--repeats", "0"), "0 repeats plan nothing", "--repeats takes a whole number from 1"),
        (("bls",), "no model was named", "add --model, as in --model sim-careful or --model gpt-5-mini"),
    ],
)
def test_a_name_or_number_that_does_not_fit_is_told_with_what_would(
    evalfarm: Run, tmp_path: Path, words: tuple[str, ...], message: str, hint: str
) -> None:
    ended = evalfarm("run", *words)
    assert (ended.code, ended.out, ended.err) == (USAGE, "", told(message, hint))
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("words", [("--repeats", "x"), ("--workers", "-1"), ("--isolation", "none"), ("--modle", "m")])
def test_an_option_that_does_not_read_is_told_with_where_to_look(
    evalfarm: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    ended = evalfarm("run", "bls", *words)
    assert (ended.code, ended.out) == (USAGE, "")
    assert ended.err.startswith("Usage: evalfarm run [OPTIONS] SUITE\nTry 'evalfarm run --help' for help.\n\nError: ")
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("old", "new", "lines_on", "told_of"),
    [
        ("cases:", "cases: [", 1, "this is not YAML: while parsing a flow node, did not find expected node content\n"),
        (
            "id: nonfarm-payroll\n    query:",
            "id: nonfarm-payroll\n    qeury:",
            1,
            "cases[2].qeury: unknown field\n\nhint: did you mean 'query'? the fields here: {fields}\n",
        ),
        (
            "id: nonfarm-payroll",
            "id: unemployment-rate",
            0,
            "cases[2].id: 'unemployment-rate' is the id of another case too, in line {first}\n",
        ),
        ("python: server.py", "python: sever.py", 0, "server.python: there is no file 'sever.py' in {folder}\n"),
        ("policy: policy.py", "policy: polizy.py", 0, "simulation.policy: there is no file 'polizy.py' in {folder}\n"),
    ],
)
def test_a_suite_that_does_not_load_is_told_with_file_line_and_field(
    evalfarm: Run, bls: Path, tmp_path: Path, old: str, new: str, lines_on: int, told_of: str
) -> None:
    text = bls.read_text(encoding="utf-8")
    bls.write_text(text.replace(old, new, 1), encoding="utf-8")
    ended = evalfarm("run", str(bls), *CAREFUL)
    fields = ", ".join(sorted({*Case.model_fields, "query"}))
    expected = told_of.format(first=line_of(text, "id: unemployment-rate"), folder=bls.parent, fields=fields)
    assert (ended.code, ended.out) == (USAGE, "")
    assert ended.err == f"Error: {bls}:{line_of(text, old) + lines_on}: {expected}"
    assert not (tmp_path / "home").exists()


def line_of(text: str, words: str) -> int:
    return text[: text.index(words)].count("\n") + 1


def test_a_tool_that_the_server_does_not_offer_is_told_with_those_it_does(
    evalfarm: Run, bls: Path, tmp_path: Path
) -> None:
    text = bls.read_text(encoding="utf-8")
    bls.write_text(text.replace("tools: [resolve]", "tools: [resolv]", 1), encoding="utf-8")
    ended = evalfarm("run", str(bls), *CAREFUL)
    line = line_of(text, "tools: [resolve]\n")
    message = f"suite 'bls' ({bls}:{line}) expects tool 'resolv', which the server of variant 'plain' does not offer"
    hint = "did you mean 'resolve'? the server offers: fetch_bls_data, resolve"
    assert (ended.code, ended.out, ended.err) == (USAGE, "", told(message, hint))
    assert stored(tmp_path / "home") == []


def test_a_server_that_does_not_come_up_is_told_with_what_it_said(evalfarm: Run, bls: Path, tmp_path: Path) -> None:
    (bls.parent / "server.py").write_text("raise SystemExit('no catalog today')\n", encoding="utf-8")
    ended = evalfarm("run", str(bls), *CAREFUL)
    assert (ended.code, ended.out) == (INFRASTRUCTURE, "")
    assert ended.err.startswith("Error: the plugin's MCP server (server.py) did not come up within 20 s: ")
    assert "no catalog today" in ended.err
    assert stored(tmp_path / "home") == []


def test_a_real_model_without_a_key_is_told_which_variable_to_set(evalfarm: Run, tmp_path: Path) -> None:
    ended = evalfarm("run", "bls", "--model", "gpt-5-mini")
    message = "model 'gpt-5-mini' is a real one, and OPENAI_API_KEY is not set"
    hint = (
        "set OPENAI_API_KEY (and OPENAI_BASE_URL for another provider), or use a simulated model: "
        "sim-careful, sim-flaky, sim-shell, sim-hostile, sim-slow, sim-erratic"
    )
    assert (ended.code, ended.out, ended.err) == (INFRASTRUCTURE, "", told(message, hint))
    assert not (tmp_path / "home").exists()


def test_a_codex_that_does_not_start_is_told_with_its_last_words(
    evalfarm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "codex"
    broken.write_text("#!/bin/sh\necho 'cannot load libssl' >&2\nexit 127\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv("EVALFARM_CODEX_BIN", str(broken))
    ended = evalfarm("run", "bls", *CAREFUL)
    message = f"the Codex binary {broken} does not start: cannot load libssl"
    hint = "run it with --version to see why"
    assert (ended.code, ended.out, ended.err) == (INFRASTRUCTURE, "", told(message, hint))
    assert stored(tmp_path / "home") == []


def test_a_codex_that_is_not_there_is_told(evalfarm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALFARM_CODEX_BIN", str(tmp_path / "codex"))
    ended = evalfarm("run", "bls", *CAREFUL)
    message = f"EVALFARM_CODEX_BIN is {tmp_path}/codex, which is no executable file"
    hint = "name a Codex binary, or unset it to use the one installed here"
    assert (ended.code, ended.out, ended.err) == (INFRASTRUCTURE, "", told(message, hint))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_redis_out_of_reach_is_told_without_its_password(
    evalfarm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    monkeypatch.setenv("EVALFARM_REDIS_URL", f"redis://:planted@127.0.0.1:{port}/0")
    ended = evalfarm("run", "bls", *CAREFUL, *DIRECT)
    message = (
        f"cannot reach Redis at redis://127.0.0.1:{port}/0: "
        f"Error 111 connecting to 127.0.0.1:{port}. Connection refused."
    )
    hint = "is it running, and is EVALFARM_REDIS_URL right? Unset it to use the embedded server"
    assert (ended.code, ended.out, ended.err) == (INFRASTRUCTURE, "", told(message, hint))
    assert stored(tmp_path / "home") == []


def test_a_store_that_cannot_be_written_is_told(evalfarm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("EVALFARM_STORE_URL", f"file://{tmp_path}/file/store")
    ended = evalfarm("run", "bls", *CAREFUL, *DIRECT)
    assert (ended.code, ended.out) == (INFRASTRUCTURE, "")
    assert ended.err.startswith(f"Error: cannot open file://{tmp_path}/file/store: ")
    assert ended.err.endswith(f"\n\nhint: {CHECK_STORE}\n")


@pytest.mark.slow
def test_a_bucket_out_of_reach_is_told(evalfarm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALFARM_STORE_URL", "s3://bucket/evalfarm")
    for name, value in {
        "AWS_ENDPOINT": f"http://127.0.0.1:{free_port()}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "nowhere",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "planted",
    }.items():
        monkeypatch.setenv(name, value)
    ended = evalfarm("runs")
    assert (ended.code, ended.out) == (INFRASTRUCTURE, "")
    assert ended.err.startswith("Error: cannot list s3://bucket/evalfarm: ")
    assert ended.err.endswith(f"\n\nhint: {CHECK_STORE}\n")
    assert "planted" not in ended.err


def test_a_home_that_cannot_be_made_is_told(evalfarm: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    monkeypatch.setenv("EVALFARM_HOME", str(tmp_path / "file"))
    ended = evalfarm("run", "bls", *CAREFUL, *DIRECT)
    message = f"cannot make the folder {tmp_path}/file/logs: Not a directory"
    hint = "set EVALFARM_HOME to a folder that you may write to"
    assert (ended.code, ended.out, ended.err) == (INFRASTRUCTURE, "", told(message, hint))


def test_a_setting_that_does_not_read_is_told(evalfarm: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALFARM_LEASE_S", "0.1")
    ended = evalfarm("run", "bls", *CAREFUL)
    message = "EVALFARM_LEASE_S is '0.1'; expected: Input should be greater than or equal to 1"
    hint = "unset EVALFARM_LEASE_S for its default, or see docs/reference/settings.md"
    assert (ended.code, ended.out, ended.err) == (USAGE, "", told(message, hint))


@pytest.mark.parametrize("words", [("report", "night"), ("show", "night/3"), ("regrade", "night"), ("resume", "night")])
def test_a_run_that_is_not_there_is_told(evalfarm: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    ended = evalfarm(*words)
    message = f"there is no run 'night' in file://{tmp_path}/home/store"
    assert (ended.code, ended.out, ended.err) == (USAGE, "", told(message, "there are no runs yet"))


@pytest.mark.parametrize("text", ["night", "night/x", "night/1/2/3", "night/-1"])
def test_what_is_no_trial_is_told_with_how_one_is_written(evalfarm: Run, text: str) -> None:
    ended = evalfarm("show", text)
    hint = "write RUN/TRIAL, as in bls-20261130-160000/7, or RUN/TRIAL/ATTEMPT"
    assert (ended.code, ended.out, ended.err) == (USAGE, "", told(f"{text!r} is no trial", hint))


def test_a_machine_without_namespaces_is_told_what_to_allow_or_accept(tmp_path: Path) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n", encoding="utf-8")
    bwrap.chmod(0o755)
    codex = Codex(binary=tmp_path / "codex", package=tmp_path, bwrap=bwrap)
    with pytest.raises(IsolationUnavailable) as caught:
        check_isolation(codex, "cell")
    assert str(caught.value) == (
        "this machine does not allow the namespaces of an isolated cell: "
        "bwrap: No permissions to create new namespace\n\n"
        "hint: allow unprivileged user namespaces (in a container: a seccomp profile that permits them), or accept "
        "the product's own sandbox only, with --isolation harness; the report will say so"
    )
    check_isolation(codex, "harness")
