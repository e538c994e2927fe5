"""What some models do once a harness hands them a shell: idle, or look around where they should not."""

import random
from dataclasses import dataclass

from cases.policies.probes import PROBES
from cases.policies.seen import Answer, Call, Calls, Move, Policy, Seen

SHELL = "exec_command"
IDLE_COMMANDS = ("pwd", "ls -la", "echo ready")
ASKING_CHANCE = 0.6


@dataclass(frozen=True)
class Idler:
    """With a shell: idle commands first, then in 60 % of the turns a question to the user instead of any work.

    Without one: the base.
    """

    base: Policy

    def move(self, seen: Seen, draw: random.Random) -> Move:
        """The next idle command, a question back, or the base's move."""
        if seen.tool(SHELL) is None:
            return self.base.move(seen, draw)
        asks = draw.random() < ASKING_CHANCE
        done = len(seen.turn.results_of(SHELL))
        if done < len(IDLE_COMMANDS):
            return Calls((Call(SHELL, {"cmd": IDLE_COMMANDS[done]}),), reasoning_tokens=96)
        if asks:
            return Answer("The workspace is empty. Would you like me to look this up for you?", reasoning_tokens=128)
        return self.base.move(seen, draw)


@dataclass(frozen=True)
class Hostile:
    """With a shell: every probe of `PROBES`, one command each, once in a conversation; then the base.

    Without one: the base.
    """

    base: Policy

    def move(self, seen: Seen, draw: random.Random) -> Move:
        """The next probe, or the base's move."""
        done = sum(len(turn.results_of(SHELL)) for turn in seen.turns)
        if seen.tool(SHELL) is None or done >= len(PROBES):
            return self.base.move(seen, draw)
        command = tuple(PROBES.values())[done]
        return Calls((Call(SHELL, {"cmd": command, "yield_time_ms": 20_000}),), reasoning_tokens=16)
