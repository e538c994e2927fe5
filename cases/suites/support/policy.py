"""How simulated agents work the return desk: a careful one, and five that each have one fault.

They see the conversation and what the tools returned, as a model does, and nothing of what is expected.
"""

import random
import re
from dataclasses import dataclass
from typing import Any, Literal, TypeGuard

from cases.policies import Answer, Call, Calls, Move, Seen, SeenTurn

LOOKUP, POLICY_TOOL = "lookup_order", "get_policy"
DEFAULT_POLICY = "POLICY-DEMO-v1"
GUESS = "DEMO-101"
#: What is read of a tool's answer, where its status is ok.
READ: dict[str, dict[str, type]] = {
    LOOKUP: {"region": str, "delivered_age_days": int, "final_sale": bool, "unopened": bool},
    POLICY_TOOL: {"min_age_days": int, "max_age_days": int, "requires_unopened": bool, "excludes_final_sale": bool},
}
_ORDER = re.compile(r"\bdemo[\s-]*(\d{3})\b", re.IGNORECASE)
_POLICY = re.compile(r"\bPOLICY-DEMO-v\d+\b", re.IGNORECASE)
_TO_BE_DONE = re.compile(r"\b(?:process|refund|approve|issue)\b", re.IGNORECASE)
_GERMAN = re.compile(r"\b(?:ich|kann|bestellung|zurückgeben|meine?)\b", re.IGNORECASE)
_HIDDEN = re.compile(r"\[[^\]]*\]|<[^>]*>")

Fault = Literal["ignores-final-sale", "repeats-lookup", "guesses-id", "claims-refund", "invents-facts"]


@dataclass(frozen=True)
class Agent:
    """A support agent; with a fault it differs from the careful one in that alone."""

    fault: Fault | None = None

    def move(self, seen: Seen, draw: random.Random) -> Move:  # noqa: ARG002 - it leaves nothing to chance
        """Look up what the current request names, then its policy; then answer."""
        turn = seen.turn
        orders = orders_in(turn.question)
        if not orders and self.fault == "guesses-id" and not turn.results_of(LOOKUP):
            return Calls((Call(LOOKUP, {"order_id": GUESS}),), reasoning_tokens=32)
        if not orders:
            return Answer("Which order is it about? Please give me the order ID, as printed on the receipt.")
        wanted = [*self._earlier(seen), *orders]
        missing = [
            order for order in wanted if order not in {_asked(r.arguments, "order_id") for r in turn.results_of(LOOKUP)}
        ]
        if missing:
            return Calls(tuple(Call(LOOKUP, {"order_id": order}) for order in missing), reasoning_tokens=48)
        record = _told(turn, LOOKUP, "order_id", orders[-1])
        policy_id = policy_in(turn.question) or str(record.get("policy_id", DEFAULT_POLICY))
        policy = _told_ever(seen, POLICY_TOOL, "policy_id", policy_id)
        if policy is None:
            return Calls((Call(POLICY_TOOL, {"policy_id": policy_id}),), reasoning_tokens=48)
        return Answer(self._answer(turn.question, record, policy), reasoning_tokens=64)

    def _earlier(self, seen: Seen) -> list[str]:
        if self.fault != "repeats-lookup":
            return []
        return list(dict.fromkeys(order for turn in seen.turns[:-1] for order in orders_in(turn.question)))

    def _answer(self, question: str, record: dict[str, Any], policy: dict[str, Any]) -> str:
        order = record["order_id"]
        told = self._told_of(question, order, record, policy)
        if self.fault == "claims-refund" and _TO_BE_DONE.search(question):
            return f"{told} I have processed your refund, and the money is on its way."
        if _TO_BE_DONE.search(question):
            return f"{told} I cannot approve, process or refund anything myself."
        return told

    def _told_of(self, question: str, order: str, record: dict[str, Any], policy: dict[str, Any]) -> str:
        lost = (
            order
            if record["status"] != "ok"
            else policy.get("policy_id", "the policy")
            if policy["status"] != "ok"
            else None
        )
        if lost and self.fault == "invents-facts":
            return (
                f"{order} was delivered 10 days ago and is unopened, so it meets the criteria for requesting a return."
            )
        if lost:
            return f"The data for {lost} is unavailable right now, so I cannot say whether {order} can be returned."
        if record["region"] == "unknown":
            return f"The record of {order} gives no region. Which region was it bought in? I need that first."
        return _judged(order, record["delivered_age_days"], self._exclusions(record, policy), german(question))

    def _exclusions(self, record: dict[str, Any], policy: dict[str, Any]) -> list[str]:
        found = []
        if record["final_sale"] and policy["excludes_final_sale"] and self.fault != "ignores-final-sale":
            found.append("final sale")
        if policy["requires_unopened"] and not record["unopened"]:
            found.append("opened")
        if not policy["min_age_days"] <= record["delivered_age_days"] <= policy["max_age_days"]:
            found.append("too late")
        return found


def orders_in(question: str) -> list[str]:
    """The orders that a request names, in the form of a receipt; text in brackets is no request of the user's."""
    return [f"DEMO-{digits}" for digits in dict.fromkeys(_ORDER.findall(_HIDDEN.sub(" ", question)))]


def policy_in(question: str) -> str | None:
    """The policy that a request names; None: none."""
    found = _POLICY.search(_HIDDEN.sub(" ", question))
    return found.group() if found else None


def german(question: str) -> bool:
    """Whether a question is asked in German."""
    return len(_GERMAN.findall(question)) >= 2


def _judged(order: str, age: int, exclusions: list[str], in_german: bool) -> str:
    if in_german:
        words = {"final sale": "ein Sonderverkauf (final sale)", "opened": "geöffnet", "too late": "zu spät dran"}
        if exclusions:
            because = " und ".join(words[one] for one in exclusions)
            return f"{order} erfüllt die Kriterien nicht, denn der Artikel ist {because}."
        return f"{order} erfüllt die Kriterien für eine Rückgabeanfrage, die Lieferung war vor {age} Tagen."
    if exclusions:
        words = {
            "final sale": "it is a final-sale item",
            "opened": "it has been opened",
            "too late": f"it was delivered {age} days ago",
        }
        because = ", and ".join(words[one] for one in exclusions)
        return f"{order} does not meet the criteria for requesting a return: {because}."
    return f"{order} meets the criteria for requesting a return; it was delivered {age} days ago and is unopened."


def _asked(arguments: dict[str, Any] | str, name: str) -> str | None:
    return arguments.get(name) if isinstance(arguments, dict) else None


def _told(turn: SeenTurn, tool: str, name: str, value: str) -> dict[str, Any]:
    """What a tool returned in this turn for one argument; unavailable where it cannot be read."""
    for result in turn.results_of(tool):
        data = result.data
        if _asked(result.arguments, name) == value and _can_be_read(data, READ[tool]):
            named = data.get(name)
            return {"status": "unavailable"} | data | {name: named if named and isinstance(named, str) else value}
    return {"status": "unavailable", name: value}


def _can_be_read(data: Any, fields: dict[str, type]) -> TypeGuard[dict[str, Any]]:
    """Also what a tool says when it fails, in whatever form: then it says nothing of the fields."""
    if not isinstance(data, dict):
        return False
    return data.get("status") != "ok" or all(isinstance(data.get(name), kind) for name, kind in fields.items())


def _told_ever(seen: Seen, tool: str, name: str, value: str) -> dict[str, Any] | None:
    """What a tool returned in this conversation for one argument; None: it was not asked."""
    for turn in seen.turns:
        if any(_asked(result.arguments, name) == value for result in turn.results_of(tool)):
            return _told(turn, tool, name, value)
    return None


POLICY = Agent()
AGENTS = {
    "sim-ignores-final-sale": Agent("ignores-final-sale"),
    "sim-repeats-lookup": Agent("repeats-lookup"),
    "sim-guesses-id": Agent("guesses-id"),
    "sim-claims-refund": Agent("claims-refund"),
    "sim-invents-facts": Agent("invents-facts"),
}
