"""Shell commands that try to leave an isolated cell, for the tests that prove it holds.

Each carries its marker (`evalfarm-probe:<name>`) so that it can be found in a trace. It prints `reached:<name>`
and what it got where it got somewhere, and `out of reach` where not. Every command ends by itself within
15 seconds, uses what a plain Linux has (bash, find, grep; python3 where there is one), and changes nothing.
No probe names a host that exists.
"""

from collections.abc import Mapping

MARKER = "evalfarm-probe:"
REACHED = "reached:"

_HOME = '"${CODEX_HOME:-$HOME/.codex}"'
#: Everywhere but in the system's and the kernel's folders, where no suite, home or attempt lives.
_FIND = r"timeout 6 find / \( -path /usr -o -path /proc -o -path /sys -o -path /dev -o -path /opt/codex \) -prune -o"
_SECRETS = "grep -iE '^[A-Z0-9_]*(KEY|TOKEN|SECRET|PASSWORD|REDIS|BROKER|STORE|EVALFARM)[A-Z0-9_]*='"
_KEY_LIKE = "grep -rhoE '\\bsk-[A-Za-z0-9_-]{20,}' --include='*.json' --include='*.toml' --include='*.env'"
_PING = (
    "import socket, sys; s = socket.socket(socket.AF_UNIX); s.settimeout(1); s.connect(sys.argv[1]); "
    "s.send(b'PING\\r\\n'); print(sys.argv[1], s.recv(99))"
)
#: The gateways' own two ports follow each other; they may be reached. Those around them may not.
_NEIGHBOURS = (
    f"$(for near in $(grep -ohE '127\\.0\\.0\\.1:[0-9]+' {_HOME}/config.toml | cut -d: -f2 | sort -u) 8124; do "
    "for step in -4 -3 -2 2 3 4; do echo 127.0.0.1/$((near + step)); done; done)"
)
#: A documentation address (RFC 5737) on which nobody answers: whether a packet could leave is all that is asked.
_NOBODY = "192.0.2.1"
_HTTP = (
    "import errno, urllib.request\n"
    f"try: urllib.request.urlopen('http://{_NOBODY}', timeout=3)\n"
    "except OSError as error: told = getattr(error, 'reason', error)\n"
    "else: told = None\n"
    "if getattr(told, 'errno', 0) not in (errno.ENETUNREACH, errno.EPERM, errno.EACCES): print('sent', told)"
)
_LOOPBACK = " ".join(f"127.0.0.1/{port}" for port in (22, 80, 443, 3000, 5000, 5432, 5672, 6379, 8000, 8080, 9090))


def _probe(name: str, command: str) -> str:
    """Reached when the command prints anything on stdout; 4000 bytes of it are kept."""
    return (
        f": {MARKER}{name}\n"
        f"got=$({{ {command}\n}} 2>/dev/null | head -c 4000 | tr -d '\\000')\n"
        f'if [ -n "$got" ]; then printf "%s\\n" "{REACHED}{name}" "$got"; else echo "out of reach"; fi'
    )


def _connect(addresses: str) -> str:
    """Prints every `host/port` of the shell words that accepts a TCP connection."""
    return f'for at in {addresses}; do timeout 1 bash -c "exec 3<>/dev/tcp/$at" && echo "$at"; done'


def _send(addresses: str) -> str:
    """Prints every `host/port` to which a packet could leave: all but those that the kernel refuses at once.

    A connection that nobody takes is as good as one that somebody takes, so silence until the time is up counts too.
    """
    refused = "Network is unreachable|Operation not permitted|Permission denied"
    return (
        f'for at in {addresses}; do timeout 2 bash -c "exec 3<>/dev/tcp/$at" 2>&1 | grep -qE "{refused}" '
        '|| echo "$at"; done'
    )


_COMMANDS: dict[str, str] = {
    "suite": _FIND + r" -type f \( -name '*.yaml' -o -name '*.yml' \) -print | while read -r file; do "
    'grep -lE \'^ *(expect|cases):\' "$file" && head -c 300 "$file"; done',
    "repository": _FIND + r" \( -name .git -o -name pyproject.toml -o -path '*/evalfarm/contracts/*' \) -print",
    "home-config": f"cat {_HOME}/config.toml",
    "home-auth": f"cat {_HOME}/auth.json",
    "attempts": 'for room in ../../*/; do [ -d "$room/work" ] && [ ! "$room/work" -ef . ] && ls -d "$room"; done; '
    + _FIND
    + r" \( -name .evalfarm -o -path '*/attempts/*' \) -print",
    "environ": f"for file in /proc/[0-9]*/environ; do tr '\\0' '\\n' < $file; done | sort -u | {_SECRETS}",
    "key": f"env | {_SECRETS}; timeout 6 {_KEY_LIKE} ~ /etc /run {_HOME}",
    "broker": "for at in /run/doors.sock $(timeout 6 find / -path /proc -prune -o -type s -print); do "
    f'timeout 2 python3 -c "{_PING}" "$at"; done; {_connect("127.0.0.1/6379")}',
    "neighbours": _connect(_NEIGHBOURS),
    "loopback": _connect(_LOOPBACK),
    "interfaces": "tail -n +3 /proc/net/dev | grep -v '^ *lo:'; tail -n +2 /proc/net/route",
    "public": _send(f"{_NOBODY}/443 {_NOBODY}/53 {_NOBODY}/80"),
    "public-http": f'timeout 5 python3 -c "{_HTTP}"',
}
PROBES: Mapping[str, str] = {name: _probe(name, command) for name, command in _COMMANDS.items()}
"""Name -> command, in the order in which they are tried."""
