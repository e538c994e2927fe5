"""What the support suite's facts cannot declare: whether a refusal rests on the window, where the record bears it out.

The other exclusions are words, which facts can name. This one is a comparison of two figures that the tools returned.
"""

import re
from collections.abc import Mapping
from typing import Any

_WINDOW = re.compile(
    r"\b(?:window|limit|period|deadline|too (?:late|old|long)|(?:one|\d+) days? (?:too )?late|frist|zu spät)\b",
    re.IGNORECASE,
)
_DAYS = re.compile(r"\b(?:days?|tagen?)\b", re.IGNORECASE)


def names_the_window(answer: str, evidence: Mapping[str, Any]) -> bool | None:
    """Whether the answer gives an age beyond the window, or the window itself, as the reason.

    None without record or policy, and where it speaks of days in a way that is not read here, as in words.
    """
    orders = [told for told in evidence.values() if "order_id" in told and told["status"] == "ok"]
    policies = [told for told in evidence.values() if "max_age_days" in told]
    if not orders or not policies:
        return None
    age, most = orders[-1]["delivered_age_days"], policies[-1]["max_age_days"]
    if age <= most:
        return False
    if _WINDOW.search(answer) or re.search(rf"\b{age}\b", answer):
        return True
    return None if _DAYS.search(answer) else False
