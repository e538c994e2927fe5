"""Things that are done to a farm at work: each function does one of them, and undoes what it can."""

import os
import signal
import time
from contextlib import suppress

import pytest
import redis

from evalfarm.runstate import connect
from tests.faults.farm import LEASE_S, Farm


def kill_connections(farm: Farm) -> None:
    with connect(farm.broker.url) as client:
        for _ in range(10):
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            time.sleep(0.1)


def restart(farm: Farm) -> None:
    farm.broker.stop()
    farm.broker.start()


def kill_and_start_from_its_log(farm: Farm) -> None:
    farm.broker.stop(signal.SIGKILL)
    farm.broker.start()


def stay_away_for_two_leases(farm: Farm) -> None:
    farm.broker.stop(signal.SIGKILL)
    time.sleep(2 * LEASE_S)
    farm.broker.start()


def be_full(farm: Farm) -> None:
    with connect(farm.broker.url) as client:
        client.config_set("maxmemory", "1mb")
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            client.set("x", "x")
        time.sleep(1.5 * LEASE_S)
        client.config_set("maxmemory", 0)


def be_read_only(farm: Farm) -> None:
    with connect(farm.broker.url) as client:
        client.replicaof("127.0.0.1", 1)
        with pytest.raises(redis.ReadOnlyError):
            client.set("x", "x")
        time.sleep(1.5 * LEASE_S)
        client.replicaof("no", "one")


def kill_a_process_of_a_worker(farm: Farm) -> None:
    for worker in farm.at_work():
        for child in worker.children()[:1]:
            os.kill(child, signal.SIGKILL)
            return


def kill_a_worker(farm: Farm) -> None:
    farm.at_work()[0].process.kill()
    farm.work()


def stop_a_worker(farm: Farm) -> None:
    farm.at_work()[0].process.terminate()
    farm.work()


def freeze_a_worker_for_two_leases(farm: Farm) -> None:
    worker = farm.at_work()[0]
    frozen = [worker.pid, *worker.children()]
    for how in (signal.SIGSTOP, signal.SIGCONT):
        for pid in frozen:
            with suppress(ProcessLookupError):  # somebody else killed it
                os.kill(pid, how)
        if how == signal.SIGSTOP:
            time.sleep(2 * LEASE_S)


def swallow_for_two_leases(farm: Farm) -> None:
    farm.proxy.swallow("up", "down")
    time.sleep(2 * LEASE_S)
    farm.proxy.heal()


def swallow_replies_for_a_lease(farm: Farm) -> None:
    farm.proxy.swallow("down")
    time.sleep(LEASE_S)
    farm.proxy.heal()


def refuse_for_a_lease(farm: Farm) -> None:
    farm.proxy.reset(refuse=True)
    time.sleep(LEASE_S)
    farm.proxy.heal()


def cut_replies(farm: Farm) -> None:
    for after in (0, 1, 2, 3, 5, 8, 13):
        farm.proxy.cut_next_reply(after)
        time.sleep(0.15)
    farm.proxy.heal()


OF_THE_BROKER = (
    kill_connections,
    restart,
    kill_and_start_from_its_log,
    stay_away_for_two_leases,
    be_full,
    be_read_only,
)
OF_THE_NETWORK = (swallow_for_two_leases, swallow_replies_for_a_lease, refuse_for_a_lease, cut_replies)
OF_WORKERS = (kill_a_process_of_a_worker, kill_a_worker, stop_a_worker, freeze_a_worker_for_two_leases)
