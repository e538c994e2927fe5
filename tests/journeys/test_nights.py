"""Schedules and a farm under one supervisor, as a team has them: commands as processes."""

import http.server
import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from evalfarm.contracts.schedule import Night
from evalfarm.nights import Nights
from evalfarm.store import Store

pytestmark = pytest.mark.slow

#: Due once a year, and not now: what is due was missed.
FILE = """\
[schedules.bls-yearly]
suite = "bls"
models = ["sim-careful"]
harnesses = ["loop"]
variants = ["plain"]
when = { cron = "30 2 1 1 *", time_zone = "Europe/Vienna" }
notify = ["team", "files"]

[receivers.team]
webhook_env = "TEAM_WEBHOOK"
on = ["inconclusive"]

[receivers.files]
folder = "told"
on = ["inconclusive"]
"""
HUNDRED_YEARS_AGO_S = -1_230_768_000.0


@contextmanager
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A receiver on this machine: its address, and what it was sent."""
    heard: list[dict[str, Any]] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/T0/secret", heard
        server.shutdown()
        thread.join()


def written(place: Any) -> Path:
    """The schedules' file of a place."""
    place.root.mkdir(exist_ok=True)
    path = place.root / "evalfarm.toml"
    path.write_text(FILE, encoding="utf-8")
    return Path(path)


def nights_of(place: Any) -> list[Night]:
    return Nights(place.store.objects).of("bls-yearly", 10)


def test_two_beats_run_a_missed_night_once_and_tell_of_it_once(another_place: Any, wait_until: Any) -> None:
    with webhook() as (address, heard):
        place = another_place("a", TEAM_WEBHOOK=address)
        place.extra["EVALFARM_FILE"] = str(written(place))
        Nights(Store(f"file://{place.home}/store").objects).since("bls-yearly", HUNDRED_YEARS_AGO_S)
        services = [place.start(*words) for words in (["beat"], ["beat"], ["scheduler"], ["worker", "--slots", "1"])]
        wait_until(lambda: heard, "that the team is told")
        wait_until(lambda: list((place.root / "told").glob("*.xml")), "that the files are written")
        for service in services:
            service.process.send_signal(signal.SIGTERM)
        told = [service.end().err for service in services]
        ran = [night for night in nights_of(place) if night.decision == "late"]
        assert [one["text"] for one in heard] == [
            f"INCONCLUSIVE: bls-yearly, night of {ran[0].stamp[:4]}-01-01 02:30, late"
        ]
        assert [manifest.run for manifest in place.store.runs()] == [ran[0].run]
        assert place.summary(ran[0].run).passed == 5
        assert not any("secret" in line for line in told)
        place.falls_quiet()


def test_a_schedule_can_be_run_by_hand_and_shows_what_its_nights_came_to(place: Any) -> None:
    place.extra["EVALFARM_FILE"] = str(written(place))
    ended = place.run("schedule", "run", "bls-yearly", "--json")
    assert (ended.code, json.loads(ended.out)["verdict"]) == (3, "inconclusive"), ended.err
    assert "evalfarm.toml:9: receivers.team was not told" in ended.err
    assert "TEAM_WEBHOOK is not set here" in ended.err
    listed = json.loads(place.run("schedule", "list", "--json").out)["bls-yearly"]
    (night,) = listed["nights"]
    assert listed["next"].endswith("-01-01 02:30+01:00")
    assert (night["verdict"], night["accepted"]) == ("inconclusive", True)
    assert night["told"] == {"team": False, "files": True}
    place.falls_quiet()


def test_a_farm_under_one_supervisor_runs_and_leaves_nothing_behind(place: Any, wait_until: Any) -> None:
    place.extra["EVALFARM_FILE"] = str(written(place))
    farm = place.start("up", "--slots", "1", "--metrics-port", "0", "--web-port", "0")
    assert "Up: scheduler, beat, worker-1, worker-2, exporter, web" in farm.hear("Up: ")
    ended = place.run("run", "bls", "--model", "sim-careful", "--harness", "loop", "--workers", "0")
    assert ended.code == 0, ended.err
    farm.interrupt(group=True)
    assert (stopped := farm.end()).code == 0
    assert stopped.err.endswith("Stopped.\n")
    place.falls_quiet()


def test_what_is_killed_under_the_supervisor_comes_back_and_the_farm_still_stops_in_order(
    place: Any, wait_until: Any
) -> None:
    farm = place.start("up", "--workers", "1", "--slots", "1", "--metrics-port", "0", "--web-port", "0")
    farm.hear("Up: ")

    def mains(words: str) -> set[int]:
        """The processes with this command line that the supervisor itself has started."""
        return {one.pid for one in place.living() if words in one.argv and one.parent == farm.process.pid}

    for words, name in (("evalfarm worker", "worker-1"), ("evalfarm scheduler", "scheduler")):
        wait_until(lambda words=words: mains(words), f"that {name} is there")
        (killed,) = mains(words)
        os.kill(killed, signal.SIGKILL)
        assert f"{name} has stopped, and is started again" in farm.hear(name)
        wait_until(lambda words=words, killed=killed: mains(words) - {killed}, f"that {name} is there again")
    ended = place.run("run", "bls", "--model", "sim-careful", "--harness", "loop", "--workers", "0")
    assert ended.code == 0, ended.err
    farm.process.send_signal(signal.SIGTERM)
    assert (stopped := farm.end()).code == 0
    assert stopped.err.endswith("Stopped.\n")
    place.falls_quiet()
