"""What the lines of one session file have told so far, and the trace that it adds up to."""

from dataclasses import dataclass, field
from typing import Any

from evalfarm.analysis.conversations.rollout_calls import HeldCall
from evalfarm.contracts.run import Arm, ModelRequest, Outcome, Telemetry, Trace, Trial, Turn

VARIANT = "imported"
_OWN_ACCOUNT = "a session file is the harness's own account: no gateway saw these calls and requests"
_USAGE = {
    "input_tokens": "input_tokens",
    "cached_tokens": "cached_input_tokens",
    "cached_write_tokens": "cache_write_input_tokens",
    "output_tokens": "output_tokens",
    "reasoning_tokens": "reasoning_output_tokens",
}


@dataclass(slots=True)
class OpenTurn:
    """One question, and what has come of it."""

    query: str
    by_event: bool
    began: float
    ended: float
    answer: str = ""
    active: bool = False  #: the model has said or asked for something


@dataclass(slots=True)
class Session:
    """What the lines read so far have told."""

    session: str | None = None
    model: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    turns: list[OpenTurn] = field(default_factory=list)
    calls: dict[str, HeldCall] = field(default_factory=dict)
    records: dict[str, ModelRequest] = field(default_factory=dict)
    counts: list[ModelRequest] = field(default_factory=list)  #: of earlier versions, which have no records
    counted: object = None
    first: float | None = None
    now: float = 0.0
    asked_at: float = 0.0
    answered_at: float = 0.0
    stopped: str | None = None  #: the user, or Codex for its own reasons, broke the last turn off
    error: str | None = None
    unread: int = 0

    def goes_on(self) -> None:
        """The turn takes until now: what lies between its end and the next question is nobody's time."""
        if self.turns:
            self.turns[-1].ended = self.now


def request_of(session: Session, usage: Any, response_id: str | None) -> ModelRequest:
    """A request by its tokens. It took from the last thing that the model was given to the last that it wrote."""
    counts = usage if isinstance(usage, dict) else {}
    first = session.first or 0.0
    return ModelRequest(
        started_s=max(0.0, session.asked_at - first),
        latency_s=max(0.0, session.answered_at - session.asked_at),
        status=200,
        response_id=response_id,
        model=session.model,
        **{name: _count(counts.get(key)) for name, key in _USAGE.items()},
    )


def trace_of_session(session: Session, run: str, index: int, own: frozenset[str]) -> Trace:
    """The trace of a session that has a name and a turn; `own` are the plugin's servers, none: every server."""
    outcome, failure = _ending(session)
    calls = list(session.calls.values())
    gaps = [_OWN_ACCOUNT] + ([f"{session.unread} lines do not read"] if session.unread else [])
    return Trace(
        run=run,
        trial=Trial(
            index=index,
            case=session.session or "",
            repeat=0,
            arm=Arm(model=session.model or "unknown", harness="codex", variant=VARIANT),
            seed=0,
        ),
        attempt=1,
        session=session.session,
        outcome=outcome,
        failure=failure,
        turns=tuple(Turn(query=turn.query, answer=turn.answer) for turn in session.turns),
        tool_calls=tuple(call.as_call(own) for call in calls if not call.is_shell),
        requests=tuple(session.records.values()) or tuple(session.counts),
        shell_commands=tuple(call.as_command() for call in calls if call.is_shell),
        telemetry=Telemetry(complete=False, gaps=tuple(gaps)),
        versions=session.versions,
        isolation="harness",
        started_at=session.first or 0.0,
        # A session may be taken up again after days: only its turns took time.
        duration_s=sum(max(0.0, turn.ended - turn.began) for turn in session.turns),
    )


def _ending(session: Session) -> tuple[Outcome, str | None]:
    if session.stopped is not None:
        return "gave_up", f"broken off: {session.stopped}"
    if session.turns[-1].answer:
        return "finished", None
    return "crashed", session.error or "the session ends before an answer"


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
