"""What the support suite's facts cannot declare: whether a refusal names an exclusion that really applies."""

import re
from collections.abc import Mapping
from typing import Any

NAMES = {
    "final_sale": r"final[ -]?sale|sonderverkauf|endg[üu]ltig\w* verkauf",
    "opened": r"\bopened\b|not unopened|unsealed|ge[öo]ffnet",
    "too_late": r"\b\d+ (?:days?|tagen?)\b|window|too (?:late|old)|zu sp[äa]t",
}


def names_an_exclusion(answer: str, evidence: Mapping[str, Any]) -> bool | None:
    """Whether the answer names an exclusion that the record and the policy bear out; None without either."""
    applying = exclusions(evidence)
    return None if applying is None else any(re.search(NAMES[one], answer, re.IGNORECASE) for one in applying)


def names_every_exclusion(answer: str, evidence: Mapping[str, Any]) -> bool | None:
    """Whether the answer names each exclusion that applies; None without record or policy."""
    applying = exclusions(evidence)
    return None if applying is None else all(re.search(NAMES[one], answer, re.IGNORECASE) for one in applying)


def exclusions(evidence: Mapping[str, Any]) -> list[str] | None:
    """The exclusions that apply to the order returned last."""
    orders = [told for told in evidence.values() if "order_id" in told and told["status"] == "ok"]
    policies = [told for told in evidence.values() if "max_age_days" in told]
    if not orders or not policies:
        return None
    order, policy = orders[-1], policies[-1]
    applying = {
        "final_sale": order["final_sale"] and policy["excludes_final_sale"],
        "opened": policy["requires_unopened"] and not order["unopened"],
        "too_late": order["delivered_age_days"] > policy["max_age_days"],
    }
    return [name for name, applies in applying.items() if applies]
