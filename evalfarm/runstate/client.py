"""redis-py's client, by a shorter way from a command to its reply."""

import hashlib
import os
from collections import deque
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import redis


class Script:
    """A script in Lua, under the digest by which a server knows it once it was sent."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def digest(self) -> str:
        """SHA-1, in hex."""
        return hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class Client(redis.Redis):
    """Keeps connections at hand for single commands; pipelines and all else go redis-py's way.

    That way hands a connection back to its pool after each command, looks for unread data before the next and tells
    counters that nobody reads, which takes as long as the round trip itself: 40 µs of CPU time a command. Here a
    connection whose server went away is noticed as the command fails, and the command is sent again like any other that
    failed. Safe to share between threads and across a fork.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._at_hand: deque[Any] = deque()  # connections that were the pool's, and do not go back to it

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command, and again where the connection fails, as often as `connect` has it; its reply."""
        connection = self._taken()
        clean = False

        def ask() -> Any:
            connection.send_command(*args, **options)
            return self.parse_response(connection, args[0], **options)  # type: ignore[no-untyped-call]

        try:
            connection.connect()  # nothing where it is open; within `ask` each try would try as often again
            reply = connection.retry.call_with_retry(ask, lambda _: connection.disconnect())
            clean = True
        except redis.ResponseError:  # a reply as well
            clean = True
            raise
        finally:
            if not clean:
                connection.disconnect()  # its reply may still come, and would be taken for the next command's
            self._at_hand.append(connection)
        return reply

    def run_script(self, script: Script, keys: Sequence[str], args: Sequence[float | str | bytes]) -> Any:
        """What a script returns; its text is sent where the server does not know it yet."""
        words = ("EVALSHA", script.digest, len(keys), *keys, *args)
        try:
            return self.execute_command(*words)
        except redis.exceptions.NoScriptError:
            self.script_load(script.text)
            return self.execute_command(*words)

    def _taken(self) -> Any:
        """A connection that no other thread has; opened with its first command where it is not."""
        while self._at_hand:
            try:
                connection = self._at_hand.pop()
            except IndexError:
                break
            if connection.pid == os.getpid():  # else the process was forked, and it is the parent's
                return connection
        return self.connection_pool.get_connection()
