"""Conversations scored for a server that has no memory to spare for it, and must go on answering."""

import subprocess
import sys

from evalfarm.errors import EvalFarmError, ExitCode, RulesDisagree, StoreUnavailable, UsageError
from evalfarm.settings import inherited

_ERRORS: dict[int, type[EvalFarmError]] = {
    ExitCode.INTERNAL: RulesDisagree,
    ExitCode.INFRASTRUCTURE: StoreUnavailable,
}


def score_apart(name: str) -> None:
    """Score a run's or an import's conversations in a process of its own, which gives its memory back.

    Raises RulesDisagree, StoreUnavailable, and UsageError for anything else that kept it from it.
    """
    done = subprocess.run(
        [sys.executable, "-m", "evalfarm", "metrics", name, "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=inherited(),
    )
    if done.returncode in (ExitCode.OK, ExitCode.USAGE):
        return  # 2: none of them counts; the rows are kept all the same
    told = done.stderr.removeprefix("Error: ").partition("\n\nhint:")[0].strip()
    raise _ERRORS.get(done.returncode, UsageError)(told)
