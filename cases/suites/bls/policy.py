"""A knowledgeable model on both suites: where the catalog has a gap, it believes that it remembers a series ID."""

import hashlib

from cases.policies import Catalog

KNOWN_BY_HEART = {"consumer price index": "CUUR0000SA0"}


def remembered(indicator: str) -> str:
    """The real ID where there is one, else one that looks real and follows from the indicator's name alone."""
    text = " ".join(indicator.casefold().split())
    for name, series_id in KNOWN_BY_HEART.items():
        if name in text:
            return series_id
    drawn = hashlib.sha256(text.encode()).hexdigest()
    letters = "".join(word[0] for word in text.split() if word[0].isalpha()).upper()
    return f"{letters:X<2.2}R{int(drawn, 16) % 10**8:08d}"


POLICY = Catalog(remembered)
