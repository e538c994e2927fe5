"""Every error evalfarm raises on purpose, and the exit code each one ends a command with.

    EvalFarmError
    ├── UsageError            2   what was asked for cannot be: the caller mends it
    │   ├── SuiteError        2   a suite that does not load; names file, line and field
    │   └── UnknownName       2   no such suite, case, model, harness, variant, run or trial
    ├── RulesDisagree        70   two implementations of one rule found different figures: a fault of evalfarm's own
    └── InfrastructureError   4   something evalfarm stands on is missing or out of reach
        ├── BrokerUnavailable 4   Redis or Valkey cannot be reached or started
        ├── StoreUnavailable  4   object storage cannot be reached or written
        ├── IsolationUnavailable 4  this machine does not allow the sandbox that was asked for
        ├── HarnessUnavailable   4  the Codex binary, or a plugin's installation, does not work
        ├── ModelUnavailable     4  no key, a refused key, or a provider that stays down
        └── ServerUnavailable    4  the plugin's MCP server did not come up

A verdict on the plugin is never an error: a failed trial is a result.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's exit status says."""

    OK = 0  #: the command did what was asked; for `run`: every trial was decided
    REGRESSED = 1  #: `gate`: worse than its baseline or below its bar; `aa`: its repeats differ; `calibrate`: a fault
    USAGE = 2  #: bad input; nothing was started
    INCONCLUSIVE = 3  #: the run finished, but some trials could not be judged
    INFRASTRUCTURE = 4  #: something evalfarm stands on failed, or some trials did not run
    INTERNAL = 70  #: a fault of evalfarm's own; the message names its traceback's file, or the rows in doubt
    INTERRUPTED = 130  #: stopped by Ctrl-C; `evalfarm resume RUN` goes on


class EvalFarmError(Exception):
    """An error with one message for a person: what and where, and a hint what to do next."""

    exit_code = ExitCode.INFRASTRUCTURE

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n\nhint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[type["EvalFarmError"], tuple[str, str]]:
        return type(self), (self.message, self.hint)


class UsageError(EvalFarmError):
    """Raised when what was asked for cannot be done as asked."""

    exit_code = ExitCode.USAGE


class SuiteError(UsageError):
    """Raised when a suite does not load; the message names file, line and field."""


class UnknownName(UsageError):
    """Raised when a name stands for nothing that exists."""


class RulesDisagree(EvalFarmError):
    """Raised when the rules over conversations give other figures in SQL than in Python; names the rows."""

    exit_code = ExitCode.INTERNAL


class InfrastructureError(EvalFarmError):
    """Raised when something evalfarm stands on fails; never a verdict on the plugin."""


class BrokerUnavailable(InfrastructureError):
    """Raised when Redis cannot be reached, started or trusted with the ledger."""


class StoreUnavailable(InfrastructureError):
    """Raised when object storage cannot be read or written."""


class IsolationUnavailable(InfrastructureError):
    """Raised when the isolation that was asked for does not work on this machine."""


class HarnessUnavailable(InfrastructureError):
    """Raised when Codex does not start, or the plugin cannot be installed into it."""


class ModelUnavailable(InfrastructureError):
    """Raised when the model's provider cannot be used: no key, a refused key, an outage."""


class ServerUnavailable(InfrastructureError):
    """Raised when the plugin's MCP server does not come up or does not show its tools."""
