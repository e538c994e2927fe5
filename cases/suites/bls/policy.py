"""A knowledgeable model on this suite: it knows the real ID of the index that the catalog leaves out."""

from cases.policies import Catalog

KNOWN_BY_HEART = {"consumer price index": "CUUR0000SA0"}


def remembered(indicator: str) -> str | None:
    """The real series ID of an indicator that any model has read about."""
    text = indicator.casefold()
    return next((series_id for name, series_id in KNOWN_BY_HEART.items() if name in text), None)


POLICY = Catalog(remembered)
