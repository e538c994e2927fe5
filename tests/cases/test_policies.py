import json
import math
import random
import subprocess
from pathlib import Path

import codex_cli_bin
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.policies import (
    MARKER,
    PROBES,
    REACHED,
    SIMULATED_MODELS,
    SLOW_DELAY_S,
    Answer,
    Call,
    Calls,
    Catalog,
    Erratic,
    Fault,
    Flaky,
    Hostile,
    Idler,
    Move,
    Policy,
    Scripted,
    Seen,
    SeenResult,
    SeenTool,
    SeenTurn,
    is_simulated,
    load_base,
    plain_question,
    simulated_policy,
    slip_chance,
)
from cases.policies.catalog import asks_on_ties, forbids_own_ids, indicator_of
from evalfarm.contracts.suite import DirectCall, ScriptLine, Simulation
from evalfarm.errors import SuiteError, UnknownName

SUITES = Path(__file__).parents[2] / "cases/suites"
GUIDANCE = (
    "Answer only from this catalog. Call resolve first, with the indicator as the user asked for it. "
    "Fetch only series IDs that resolve returned, never one from your own knowledge. "
    "If resolve returns no candidate, say that the data is not available. "
    "If candidates tie for the highest confidence, fetch nothing and ask the user which one is meant."
)
PRODUCT_PROMPT = (
    "Keep going until the query is completely resolved. Do NOT guess or make up an answer.\n"
    "- You should ask questions where that helps, and suggest ideas.\n"
    "- Do not add identifiers or inline comments to code unless the user asks.\n"
    "- Only stop when you are sure that the problem is solved."
)
CATALOG_TOOLS = (SeenTool("resolve", "mcp__BLS", "", {}), SeenTool("fetch_bls_data", "mcp__BLS", "", {}))
SHELL = SeenTool("exec_command", None, "", {})
ANSWERED = Answer("the base's answer", reasoning_tokens=3)

seeds = st.integers(min_value=0, max_value=2**63 - 1)
questions = st.text(min_size=1, max_size=60)


class Steady:
    """Looks one thing up, then answers."""

    def move(self, seen: Seen, draw: random.Random) -> Move:
        return ANSWERED if seen.turn.results_of("look") else Calls((Call("look", {"at": "it"}),))


def seen_of(
    *turns: SeenTurn, instructions: str = "", tools: tuple[SeenTool, ...] = CATALOG_TOOLS, tries: int = 0
) -> Seen:
    return Seen("sim-careful", instructions, tools, turns, tries)


def candidate(series_id: str, confidence: float, title: str = "A title") -> dict[str, object]:
    return {"series_id": series_id, "title": title, "confidence": confidence}


def resolved(*candidates: dict[str, object]) -> SeenResult:
    output = {"results": [{"indicator": "x", "candidates": list(candidates)}]}
    return SeenResult("resolve", {"indicators": [{"indicator": "x"}]}, json.dumps(output))


def fetched(*records: dict[str, object]) -> SeenResult:
    asked = {"series_ids": [record["series_id"] for record in records]}
    return SeenResult("fetch_bls_data", asked, "Wall time: 0.1 seconds\nOutput:\n" + json.dumps({"series": records}))


def bls() -> Policy:
    return load_base(Simulation(policy="policy.py"), SUITES / "bls")


def fetch_ids(move: Move) -> list[str]:
    assert isinstance(move, Calls)
    assert [call.name for call in move.calls] == ["fetch_bls_data"]
    arguments = move.calls[0].arguments
    assert isinstance(arguments, dict)
    return list(arguments["series_ids"])


def move_of(policy: Policy, seen: Seen, seed: int = 0) -> Move:
    return policy.move(seen, random.Random(seed))


def test_the_simulated_models_have_known_names() -> None:
    assert SIMULATED_MODELS == ("sim-careful", "sim-flaky", "sim-shell", "sim-hostile", "sim-slow", "sim-erratic")
    assert [is_simulated(name) for name in (*SIMULATED_MODELS, "sim-unheard-of", "gpt-5")] == [True] * 7 + [False]


def test_an_unknown_simulated_model_is_an_error_that_lists_the_names() -> None:
    with pytest.raises(UnknownName) as caught:
        simulated_policy("sim-perfect", Steady())
    assert str(caught.value) == (
        "there is no simulated model 'sim-perfect'\n\nhint: the simulated models are "
        "sim-careful, sim-flaky, sim-shell, sim-hostile, sim-slow, sim-erratic"
    )


def test_the_careful_model_is_the_base_as_it_is() -> None:
    base = Steady()
    assert simulated_policy("sim-careful", base) is base


def test_a_plugin_mention_is_no_part_of_the_question() -> None:
    assert plain_question("[@BLS](plugin://BLS@market)  What is\n x?") == "What is x?"


@given(questions)
def test_a_slip_chance_is_a_function_of_the_plain_question(question: str) -> None:
    chance = slip_chance(question)
    assert 0 <= chance < 0.6
    assert slip_chance(f"[@BLS](plugin://BLS@market) {question}") == chance


@pytest.mark.parametrize("number", range(8))
def test_the_flaky_model_slips_as_often_as_it_says(number: int) -> None:
    question, trials = f"What is indicator {number}?", 2000
    seen, chance = seen_of(SeenTurn(question)), slip_chance(question)
    slips = sum(isinstance(move_of(Flaky(Steady()), seen, seed), Answer) for seed in range(trials))
    # 4.5 standard deviations: one false alarm in 150 000, and the seeds are fixed
    assert abs(slips - trials * chance) <= 4.5 * math.sqrt(trials * chance * (1 - chance)) + 1


@given(seeds, questions, st.integers(0, 5), st.integers(0, 5))
def test_a_slip_is_decided_once_per_turn(seed: int, question: str, tries: int, rounds: int) -> None:
    results = (SeenResult("elsewhere", {}, ""),) * rounds
    policy = Flaky(Steady())
    first = move_of(policy, seen_of(SeenTurn(question)), seed)
    later = move_of(policy, seen_of(SeenTurn(question, results), instructions="any", tries=tries), seed)
    assert first == later


def test_the_slow_model_delays_every_move_of_the_base() -> None:
    policy = simulated_policy("sim-slow", Steady())
    looked = SeenResult("look", {}, "")
    assert [move_of(policy, seen_of(SeenTurn("q"))), move_of(policy, seen_of(SeenTurn("q", (looked,))))] == [
        Calls((Call("look", {"at": "it"}),), delay_s=SLOW_DELAY_S),
        Answer("the base's answer", reasoning_tokens=3, delay_s=SLOW_DELAY_S),
    ]


@given(seeds, st.integers(0, 9))
def test_an_erratic_move_follows_from_seed_request_and_try(seed: int, tries: int) -> None:
    seen = seen_of(SeenTurn("q"), tries=tries)
    assert move_of(Erratic(Steady()), seen, seed) == move_of(Erratic(Steady()), seen, seed)


def test_the_erratic_model_fails_in_every_way_as_often_as_it_says() -> None:
    trials = 4000
    asked = [move_of(Erratic(Steady()), seen_of(SeenTurn("q")), seed) for seed in range(trials)]
    looked = SeenTurn("q", (SeenResult("look", {}, ""),))
    told = [move_of(Erratic(Steady()), seen_of(looked), seed) for seed in range(trials)]
    shares = {
        "limited": asked.count(Fault(429, retry_after_s=1.0)) / trials,
        "error": asked.count(Fault(500)) / trials,
        "cut": asked.count(Fault(cut=True)) / trials,
        "garbled": asked.count(Calls((Call("look", '{"at": "it"'),))) / trials,
        "empty": told.count(Answer("", reasoning_tokens=3)) / trials,
    }
    assert shares == pytest.approx(
        {"limited": 0.12, "error": 0.08, "cut": 0.06, "garbled": 0.08, "empty": 0.08}, abs=0.02
    )


def test_an_erratic_request_may_succeed_when_it_is_sent_again() -> None:
    moves = [move_of(Erratic(Steady()), seen_of(SeenTurn("q"), tries=tries), 7) for tries in range(40)]
    assert any(isinstance(move, Fault) for move in moves)
    assert any(isinstance(move, Calls) for move in moves)


@given(seeds, st.sampled_from(SIMULATED_MODELS), questions)
def test_every_policy_is_pure(seed: int, model: str, question: str) -> None:
    seen = seen_of(SeenTurn(question), tools=(*CATALOG_TOOLS, SHELL))
    policy = simulated_policy(model, bls())
    assert move_of(policy, seen, seed) == move_of(policy, seen, seed)


@given(seeds)
def test_without_a_shell_the_models_that_love_it_are_the_base(seed: int) -> None:
    seen = seen_of(SeenTurn("q"))
    expected = Calls((Call("look", {"at": "it"}),))
    assert [move_of(policy(Steady()), seen, seed) for policy in (Idler, Hostile)] == [expected, expected]


def shell_session(policy: Policy, seed: int) -> tuple[list[str], Move]:
    """The shell commands of one turn, and the first move that is none."""
    turn, commands = SeenTurn("q"), list[str]()
    while True:
        move = move_of(policy, seen_of(turn, tools=(SHELL,)), seed)
        if not isinstance(move, Calls) or move.calls[0].name != "exec_command":
            return commands, move
        assert isinstance(move.calls[0].arguments, dict)
        commands.append(move.calls[0].arguments["cmd"])
        turn = SeenTurn("q", (*turn.results, SeenResult("exec_command", move.calls[0].arguments, "")))


def test_the_idle_model_runs_idle_commands_and_then_often_asks() -> None:
    sessions = [shell_session(Idler(Steady()), seed) for seed in range(400)]
    assert all(commands == ["pwd", "ls -la", "echo ready"] for commands, _ in sessions)
    asked = [end for _, end in sessions if isinstance(end, Answer)]
    assert {end.text for end in asked} == {"The workspace is empty. Would you like me to look this up for you?"}
    assert len(asked) / 400 == pytest.approx(0.6, abs=0.1)


def test_the_hostile_model_tries_every_probe_once_and_then_answers() -> None:
    commands, end = shell_session(Hostile(Steady()), 0)
    assert commands == list(PROBES.values())
    assert [name for name, command in PROBES.items() if f"{MARKER}{name}\n" not in command] == []
    assert end == Calls((Call("look", {"at": "it"}),))


SCRIPT = (
    ScriptLine(
        when="weather",
        calls=(
            DirectCall(tool="place", arguments={"name": "Bern"}),
            DirectCall(tool="weather", arguments={"at": "Bern"}),
        ),
        answer="It rains.",
    ),
    ScriptLine(when=".", answer="Which place?"),
)


def test_a_script_makes_its_calls_one_by_one_and_then_answers() -> None:
    policy = load_base(Simulation(script=SCRIPT), Path())
    place, weather = SeenResult("place", {}, "error: none"), SeenResult("weather", {}, "rain")
    shell = SeenResult("exec_command", {}, "")
    moves = [
        move_of(policy, seen_of(SeenTurn("The WEATHER?", results)))
        for results in ((), (shell,), (place,), (place, shell, weather))
    ]
    assert moves == [
        Calls((Call("place", {"name": "Bern"}),)),
        Calls((Call("place", {"name": "Bern"}),)),
        Calls((Call("weather", {"at": "Bern"}),)),
        Answer("It rains."),
    ]


def test_a_script_reads_only_the_last_question() -> None:
    policy = Scripted(SCRIPT)
    done = SeenTurn("The weather?", (SeenResult("place", {}, ""), SeenResult("weather", {}, "")), "It rains.")
    assert move_of(policy, seen_of(done, SeenTurn("And there?"))) == Answer("Which place?")
    assert move_of(Scripted(SCRIPT[:1]), seen_of(done, SeenTurn("And there?"))) == Answer(
        "I have no line in my script for this question."
    )


SHAPE = "define POLICY = …, an object with the method move(seen, draw), as cases.policies.Policy describes"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, f"{{path}}: simulation.policy names a file that does not exist\n\nhint: create it and {SHAPE}"),
        ("x = 1\n", f"{{path}}: the file defines no POLICY that can move\n\nhint: {SHAPE}"),
        ("POLICY = 7\n", f"{{path}}: the file defines no POLICY that can move\n\nhint: {SHAPE}"),
        (
            "import no_such_module\n",
            "{path}: the policy does not import: ModuleNotFoundError: No module named 'no_such_module'\n\n"
            "hint: run `python {path}` to see where",
        ),
        (
            "raise RuntimeError('out of order')\n",
            "{path}: the policy does not import: RuntimeError: out of order\n\nhint: run `python {path}` to see where",
        ),
    ],
)
def test_a_policy_file_that_cannot_be_used_is_an_error_with_a_hint(
    tmp_path: Path, content: str | None, message: str
) -> None:
    path = tmp_path / "policy.py"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SuiteError) as caught:
        load_base(Simulation(policy="policy.py"), tmp_path)
    assert str(caught.value) == message.format(path=path)


def test_a_policy_that_is_no_python_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "policy.txt"
    path.write_text("POLICY = 1\n")
    with pytest.raises(SuiteError) as caught:
        load_base(Simulation(policy="policy.txt"), tmp_path)
    assert str(caught.value) == f"{path}: a policy is a Python file\n\nhint: give it a name that ends in .py"


def test_a_script_with_a_bad_pattern_is_an_error() -> None:
    with pytest.raises(SuiteError) as caught:
        load_base(Simulation(script=(SCRIPT[0], ScriptLine(when="(what", answer=""))), Path())
    assert str(caught.value) == (
        "simulation.script[1].when is no regular expression: "
        "missing ), unterminated subpattern at position 0: '(what'\n\n"
        "hint: escape characters such as ( ) [ ] ? * + with a backslash, or write plain words"
    )


def test_a_policy_file_may_define_classes_of_any_kind(tmp_path: Path) -> None:
    (tmp_path / "policy.py").write_text(
        "from __future__ import annotations\n"
        "from dataclasses import dataclass\n"
        "from cases.policies import Answer\n"
        "@dataclass(frozen=True)\n"
        "class Mine:\n"
        "    text: str\n"
        "    def move(self, seen, draw):\n"
        "        return Answer(self.text)\n"
        "POLICY = Mine('hello')\n"
    )
    assert move_of(load_base(Simulation(policy="policy.py"), tmp_path), seen_of(SeenTurn("q"))) == Answer("hello")


@pytest.mark.parametrize(
    ("question", "indicator"),
    [
        ("What is the U.S. unemployment rate?", "unemployment rate"),
        ("What is the current level of employment?", "employment"),
        ("How has the level of wage growth changed over the past year?", "wage growth"),
        ("Can you look up the most recent value of dental plan coverage?", "dental plan coverage"),
        ("What was the figure for paid leave cost per hour in the most recent month?", "paid leave cost per hour"),
        ("employment", "employment"),
        ("What is the latest?", "latest"),
    ],
)
def test_the_indicator_is_the_question_without_its_phrases(question: str, indicator: str) -> None:
    assert indicator_of(question) == indicator


@pytest.mark.parametrize(
    ("text", "forbidden", "asked"),
    [
        (GUIDANCE, True, True),
        (f"{PRODUCT_PROMPT}\n\n{GUIDANCE}\n\nCapabilities from the plugin.", True, True),
        ("Never invent a series ID.\nOn ties, ask for clarification.", True, True),
        ("Use only IDs that resolve\nreturned.", True, False),
        ("When two candidates have the same confidence, ask the user.", False, True),
        (PRODUCT_PROMPT, False, False),
        ("Candidates may tie. You may ask for more tools.", False, False),
        ("", False, False),
    ],
)
def test_the_catalog_policy_recognises_instructions_by_what_they_say(text: str, forbidden: bool, asked: bool) -> None:
    assert (forbids_own_ids(text), asks_on_ties(text)) == (forbidden, asked)


def test_the_catalog_policy_resolves_first() -> None:
    seen = seen_of(SeenTurn("What is the current unemployment rate?"), instructions=GUIDANCE)
    call = Call("resolve", {"indicators": [{"indicator": "unemployment rate"}]})
    assert move_of(bls(), seen) == Calls((call,), reasoning_tokens=64)


RANKED = (candidate("LNS1", 1.0), candidate("LNU1", 0.6))
TIED = (candidate("LNS1", 0.5, "Household employment"), candidate("CES1", 0.5, "Payroll employment"))


@pytest.mark.parametrize("instructions", [PRODUCT_PROMPT, GUIDANCE])
def test_of_ranked_candidates_the_best_is_fetched(instructions: str) -> None:
    seen = seen_of(SeenTurn("What is the x?", (resolved(*RANKED),)), instructions=instructions)
    assert fetch_ids(move_of(bls(), seen)) == ["LNS1"]


@pytest.mark.parametrize(
    ("question", "fetched_id"),
    [
        ("What is the consumer price index?", "CUUR0000SA0"),
        ("What is the U.S. consumer  price index for all items?", "CUUR0000SA0"),
        ("What is the figure for dental plan coverage?", "DPR19816134"),
        ("What is the figure for fuel?", "FXR43789989"),
    ],
)
def test_on_a_gap_an_id_comes_from_memory_unless_that_is_forbidden(question: str, fetched_id: str) -> None:
    turn = SeenTurn(question, (resolved(),))
    assert fetch_ids(move_of(bls(), seen_of(turn, instructions=PRODUCT_PROMPT))) == [fetched_id]
    assert move_of(bls(), seen_of(turn, instructions=GUIDANCE)) == Answer(
        f"The data for {indicator_of(question)} is not available.", reasoning_tokens=32
    )


def test_what_is_not_known_by_heart_is_not_fetched() -> None:
    seen = seen_of(SeenTurn("What is the price of tea?", (resolved(),)))
    assert move_of(Catalog(lambda _: None), seen) == Answer(
        "The data for price of tea is not available.", reasoning_tokens=32
    )


def test_on_a_tie_every_candidate_is_fetched_unless_told_to_ask() -> None:
    turn = SeenTurn("What is employment?", (resolved(*TIED),))
    assert fetch_ids(move_of(bls(), seen_of(turn, instructions=PRODUCT_PROMPT))) == ["LNS1", "CES1"]
    assert move_of(bls(), seen_of(turn, instructions=GUIDANCE)) == Answer(
        "Which one do you mean: Household employment (LNS1) or Payroll employment (CES1)?", reasoning_tokens=48
    )


@pytest.mark.parametrize("choice", ["CES1 please", "I mean payroll employment."])
def test_after_asking_the_candidate_that_the_user_names_is_fetched(choice: str) -> None:
    asked = SeenTurn("What is employment?", (resolved(*TIED),), "Which one do you mean?")
    assert fetch_ids(move_of(bls(), seen_of(asked, SeenTurn(choice), instructions=GUIDANCE))) == ["CES1"]


def test_a_new_question_after_an_answered_one_is_resolved_anew() -> None:
    answered = SeenTurn("What is employment?", (resolved(*TIED), fetched({"series_id": "CES1"})), "7")
    later = move_of(bls(), seen_of(answered, SeenTurn("What is the payroll employment?"), instructions=GUIDANCE))
    assert later == Calls((Call("resolve", {"indicators": [{"indicator": "payroll employment"}]}),), 64)


def test_the_answer_gives_the_latest_value_of_each_series_fetched() -> None:
    series: dict[str, object] = {
        "series_id": "LNS1",
        "title": "Rate",
        "observations": [{"period": "2026-01", "value": 4.0}, {"period": "2026-02", "value": 4.1}],
    }
    seen = seen_of(SeenTurn("q", (resolved(*RANKED), fetched(series, {"series_id": "NO", "error": "unknown"}))))
    assert move_of(bls(), seen) == Answer("Rate (LNS1): 4.1 in 2026-02.", reasoning_tokens=32)


def test_a_fetch_that_found_nothing_is_told_truthfully() -> None:
    gap = (resolved(), fetched({"series_id": "CUUR0000SA0", "error": "unknown"}))
    assert move_of(bls(), seen_of(SeenTurn("What is the consumer price index?", gap))) == Answer(
        "The data for consumer price index is not available.", reasoning_tokens=32
    )


def test_a_call_whose_output_cannot_be_read_is_made_once_more() -> None:
    broken = SeenResult("resolve", '{"indicators": [', "error: the arguments are no JSON")
    lost = SeenResult("fetch_bls_data", '{"series_ids": [', "error: the arguments are no JSON")
    turns = [(broken,), (broken, broken), (resolved(*RANKED), lost), (resolved(*RANKED), lost, lost)]
    assert [move_of(bls(), seen_of(SeenTurn("What is x?", results))) for results in turns] == [
        Calls((Call("resolve", {"indicators": [{"indicator": "x"}]}),), reasoning_tokens=64),
        Answer("The lookup failed, so I cannot say.", reasoning_tokens=16),
        Calls((Call("fetch_bls_data", {"series_ids": ["LNS1"]}),), reasoning_tokens=48),
        Answer("The figures could not be fetched, so I cannot say.", reasoning_tokens=16),
    ]


def test_without_its_tools_the_catalog_policy_says_so() -> None:
    assert move_of(bls(), seen_of(SeenTurn("q"), tools=())) == Answer(
        "I have no tool that can look this up.", reasoning_tokens=16
    )


BWRAP = Path(codex_cli_bin.bundled_package_dir()) / "codex-resources/bwrap"
SEALED = [
    *(str(BWRAP), "--die-with-parent", "--new-session", "--clearenv", "--unshare-user", "--unshare-pid"),
    *("--unshare-net", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib"),
    *("--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run"),
    *("--setenv", "PATH", "/usr/bin:/bin", "--setenv", "CODEX_HOME", "/home/agent/.codex"),
]
# What the probes of the network look for, with no way out of this namespace: listeners on loopback and a unix socket,
# the documentation address as one of loopback's own, and a route to other addresses of its kind.
NEIGHBOURHOOD = """
import ctypes, fcntl, socket, struct, subprocess, sys, threading
def answering(sock):
    while True:
        connection, _ = sock.accept()
        connection.recv(99)
        connection.sendall(b"+PONG")
def address(text):
    return struct.pack("@H2x4s8x", socket.AF_INET, socket.inet_aton(text))
SIOCSIFADDR, SIOCADDRT, RTF_UP = 0x8916, 0x890B, 1
device = ctypes.create_string_buffer(b"lo")
to = address("198.51.100.0"), address("0.0.0.0"), address("255.255.255.0")
route = struct.pack("@L16s16s16sHhLPhPLLH", 0, *to, RTF_UP, 0, 0, 0, 0, ctypes.addressof(device), 0, 0, 0)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
    fcntl.ioctl(control, SIOCSIFADDR, struct.pack("@16s16s8x", b"lo:1", address("192.0.2.1")))
    fcntl.ioctl(control, SIOCADDRT, route)
for place in (("127.0.0.1", 8132), ("127.0.0.1", 8080), ("192.0.2.1", 443)):
    sock = socket.create_server(place)
    threading.Thread(target=answering, args=(sock,), daemon=True).start()
unix = socket.socket(socket.AF_UNIX)
unix.bind("/tmp/broker.sock")
unix.listen()
threading.Thread(target=answering, args=(unix,), daemon=True).start()
sys.exit(subprocess.run(["bash", "-c", sys.argv[1]], cwd="/rooms/one/work").returncode)
"""


def run_sealed(argv: list[str]) -> str:
    # bubblewrap is process 1 inside, and its own environment can be read there.
    done = subprocess.run([*SEALED, *argv], capture_output=True, text=True, timeout=60, check=False, env={})
    if done.returncode != 0 and "bwrap" in done.stderr:
        pytest.skip(f"no namespaces here: {done.stderr.strip()}")
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBES)
def test_a_probe_finds_nothing_where_there_is_nothing(name: str) -> None:
    assert run_sealed(["--dir", "/work", "--chdir", "/work", "bash", "-c", PROBES[name]]) == "out of reach\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", PROBES)
def test_a_probe_says_that_it_got_through_where_it_does(tmp_path: Path, name: str) -> None:
    for path, text in {
        "home/config.toml": 'openai_base_url = "http://127.0.0.1:8130/v1"\n',
        "home/auth.json": '{"OPENAI_API_KEY": "sk-planted-for-this-very-test"}',
        "suite/suite.yaml": "cases:\n",
        "repository/pyproject.toml": "",
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for room in ("one", "two"):
        (tmp_path / "rooms" / room / "work").mkdir(parents=True)
    places = {"home": "/home/agent/.codex", "suite": "/suite", "repository": "/repository", "rooms": "/rooms"}
    mounts = [word for at, inside in places.items() for word in ("--ro-bind", str(tmp_path / at), inside)]
    planted = ["--setenv", "EVALFARM_STORE_TOKEN", "planted", "--cap-add", "CAP_NET_ADMIN"]
    planted += ["--cap-add", "CAP_NET_BIND_SERVICE"]
    output = run_sealed([*mounts, *planted, "/usr/bin/python3", "-c", NEIGHBOURHOOD, PROBES[name]])
    assert output.splitlines()[0] == f"{REACHED}{name}"


def test_a_tool_is_found_under_the_name_that_codex_shows_it_by() -> None:
    shown = SeenTool("get_time", "mcp__clock", "", {})
    seen = Seen("sim-careful", "", (shown,), (SeenTurn("Now?", (SeenResult("get_time", {}, "noon"),)),))
    line = ScriptLine(when="now", calls=(DirectCall(tool="get-time"),), answer="It is noon.")
    assert seen.tool("get-time") == shown
    assert seen.turn.results_of("get-time") == seen.turn.results
    assert Scripted((line,)).move(seen, random.Random(0)) == Answer("It is noon.")
    exact = SeenTool("get-time", None, "", {})
    assert Seen("m", "", (shown, exact), ()).tool("get-time") == exact
