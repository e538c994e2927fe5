"""The first program in a sealed cell: opens the cell's two doors and becomes the harness.

    python3 -IS in_cell.py COMMAND [ARG ...]

It listens on two fixed ports of the cell's private loopback, hands both listening sockets to the worker through
the unix socket at /run/doors.sock, and replaces itself with COMMAND. A socket stays in the network namespace it
was opened in, so the worker accepts on them from outside: the model's and the tools' addresses are the same in
every attempt, nothing is copied by a relay, and no process of ours stays inside with the agent.

Runs on whatever Python the system has, without site packages; it imports nothing of evalfarm.
"""

import os
import resource
import socket
import sys

PORTS = (8124, 8123)  # the model gateway, the tool gateway
MOST_PROCESSES = 1024  # threads included: Codex has some dozens
COUNTED_BY_NAMESPACE = (5, 14)  # before this Linux, all processes of the worker's user on the machine counted as one


def main() -> None:
    """Open the doors, wait until the worker holds them, and go on as COMMAND."""
    listeners = []
    for port in PORTS:
        listener = socket.socket()
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        listeners.append(listener)
    with socket.socket(socket.AF_UNIX) as worker:
        worker.connect("/run/doors.sock")
        socket.send_fds(worker, [b"doors"], [listener.fileno() for listener in listeners])
        worker.recv(1)
    if tuple(int(part) for part in os.uname().release.split(".")[:2]) >= COUNTED_BY_NAMESPACE:
        # So that an agent which starts processes without end keeps others from starting theirs nowhere but in here.
        resource.setrlimit(resource.RLIMIT_NPROC, (MOST_PROCESSES, MOST_PROCESSES))
    # Python opens sockets close-on-exec: COMMAND inherits none of them.
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606


if __name__ == "__main__":
    main()
