"""Processes that this one starts and waits for."""

import os
import select
import subprocess
import sys


class Started(subprocess.Popen[bytes]):
    """One whose end is noticed at once, where subprocess looks every 50 ms as soon as there is a time limit."""

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        if timeout is None or sys.platform != "linux" or self.poll() is not None:
            return super().wait(timeout)
        descriptor = os.pidfd_open(self.pid)
        try:
            ended = select.poll()
            ended.register(descriptor, select.POLLIN)
            ended.poll(timeout * 1000)
        finally:
            os.close(descriptor)
        return super().wait(0)
