"""The numbers, dates and identifiers in an answer."""

import re
from datetime import date

from graders.reading.clauses import stretches

_NUMBER = re.compile(r"(?<![\w.,-])[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d])|(?<![\w.,-])[-+]?\d+(?:\.\d+)?(?![\d])")
_ONES = (
    "zero|null,one|ein|eine|einem|einen,two|zwei,three|drei,four|vier,five|fünf,six|sechs,seven|sieben,eight|acht,"
    "nine|neun,ten|zehn,eleven|elf,twelve|zwölf,thirteen|dreizehn,fourteen|vierzehn,fifteen|fünfzehn,"
    "sixteen|sechzehn,seventeen|siebzehn,eighteen|achtzehn,nineteen|neunzehn"
)
_TENS = (
    "twenty|zwanzig,thirty|dreißig|dreissig,forty|vierzig,fifty|fünfzig,sixty|sechzig,seventy|siebzig,eighty|achtzig,"
    "ninety|neunzig"
)
_WORTH = {
    **{name: worth for worth, names in enumerate(_ONES.split(",")) for name in names.split("|")},
    **{name: 10 * tens for tens, names in enumerate(_TENS.split(","), 2) for name in names.split("|")},
}
_NAMED = "|".join(sorted(_WORTH, key=len, reverse=True))
_IN_WORDS = re.compile(rf"(?<![\w-])(?P<first>{_NAMED})(?:[ -](?P<ones>{_NAMED}))?(?![\w-])", re.IGNORECASE)
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_DATE = re.compile(
    r"\b(?P<y>\d{4})-(?P<m>\d{2})-(?P<d>\d{2})\b"
    r"|\b(?P<d2>\d{1,2})(?:st|nd|rd|th)? (?P<n2>[A-Za-z]{3,9})\.?,? (?P<y2>\d{4})\b"
    r"|\b(?P<n3>[A-Za-z]{3,9})\.? (?P<d3>\d{1,2})(?:st|nd|rd|th)?,? (?P<y3>\d{4})\b"
    r"|\b(?P<d4>\d{1,2})\.(?P<m4>\d{1,2})\.(?P<y4>\d{4})\b"
)


def numbers(text: str, unit: str | None, near: str | None) -> list[float]:
    """The numbers with a unit right behind (or before, as a currency), in clauses with `near`.

    In digits; with a unit in words too, up to ninety-nine: without one, `one` and `two` count nothing in particular.
    """
    found = []
    for clause in stretches(text, near):
        told = clause if unit is None else _IN_WORDS.sub(_in_digits, clause)
        for match in _NUMBER.finditer(told):
            behind, before = told[match.end() :], told[: match.start()]
            if (
                unit is None
                or re.match(rf"[\s-]*(?:{unit})(?!\w)", behind, re.IGNORECASE)
                or (re.search(rf"(?:{unit})\s*$", before, re.IGNORECASE))
            ):
                found.append(float(match.group().replace(",", "")))
    return found


def dates(text: str, near: str | None) -> list[str]:
    """The dates in a text, as YYYY-MM-DD; only forms that mean one day are read."""
    found = []
    for clause in stretches(text, near):
        for match in _DATE.finditer(clause):
            parts = {name[0]: value for name, value in match.groupdict().items() if value}
            month = _month(parts["n"]) if "n" in parts else int(parts["m"])
            try:
                found.append(date(int(parts["y"]), month, int(parts["d"])).isoformat())
            except ValueError:
                continue
    return found


def identifiers(text: str, like: str, near: str | None) -> list[str]:
    """Words of the same shape as an identifier (letters for letters, digits for digits), without case and spaces."""
    shape = "".join(_place(sign) for sign in like)
    pattern = re.compile(rf"(?<![A-Za-z0-9]){shape}(?![A-Za-z0-9])")
    return [plain_identifier(match) for clause in stretches(text, near) for match in pattern.findall(clause)]


def plain_identifier(text: str) -> str:
    """An identifier without case, spaces and hyphens: `DEMO-102` and `demo 102` are one."""
    return re.sub(r"[\s_-]", "", text).casefold()


def _in_digits(match: re.Match[str]) -> str:
    first, ones = _WORTH[match["first"].casefold()], match["ones"]
    if ones is None:
        return str(first)
    added = _WORTH[ones.casefold()]
    return str(first + added) if first >= 20 and 0 < added < 10 else f"{first} {added}"


def _place(sign: str) -> str:
    if sign.isalpha():
        return "[A-Za-z]"
    return r"\d" if sign.isdigit() else r"[\s_-]?" if sign in "-_ " else re.escape(sign)


def _month(name: str) -> int:
    """1 … 12; 0: no month."""
    return next(
        (
            at
            for at, month in enumerate(_MONTHS, 1)
            if month[:3] == name.casefold()[:3] and month.startswith(name.casefold())
        ),
        0,
    )
