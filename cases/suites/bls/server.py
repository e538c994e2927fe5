"""A miniature of a labor-statistics MCP server over a catalog beside it; every value is made up.

`resolve` turns indicators into ranked candidate series, `fetch_bls_data` returns their observations.
Its environment may name the catalog's file (BLS_CATALOG, `catalog.json` unless said otherwise). With
BLS_GUIDANCE=1 the server publishes instructions; otherwise it publishes none.
"""

import json
import os
from pathlib import Path
from typing import Annotated, Any

from fastmcp import FastMCP
from pydantic import BaseModel, ConfigDict, Field

INSTRUCTIONS = """\
Answer only from this catalog. Call resolve first, with the indicator as the user asked for it. \
Fetch only series IDs that resolve returned, never one from your own knowledge. \
If resolve returns no candidate, say that the data is not available. \
If candidates tie for the highest confidence, fetch nothing and ask the user which one is meant.\
"""
NOTHING_FOUND = (
    "No series in this catalog matches. This is definitive, not a passing fault: asking again changes nothing."
)
UNKNOWN_SERIES = "This catalog has no series with this ID."


class Indicator(BaseModel):
    """What the user wants to know about."""

    model_config = ConfigDict(extra="forbid")

    indicator: Annotated[str, Field(min_length=1, description="The indicator in the user's own words.")]


class Catalog(BaseModel):
    """Series by ID, and which indicators stand for which of them."""

    class Entry(BaseModel):
        """Candidates for every indicator that one of the keywords stands in."""

        keywords: list[str]
        candidates: list[dict[str, Any]]  #: {"series_id", "confidence"}, best first

    class Series(BaseModel):
        """One time series."""

        title: str
        observations: list[dict[str, Any]]  #: {"period", "value"}, oldest first

    entries: list[Entry]
    series: dict[str, Series]

    def candidates(self, indicator: str) -> list[dict[str, Any]]:
        """The ranked candidates of the first entry with a keyword in the indicator; none: an empty list."""
        text = " ".join(indicator.casefold().split())
        for entry in self.entries:
            if any(keyword in text for keyword in entry.keywords):
                return [
                    {"series_id": c["series_id"], "title": self.series[c["series_id"]].title, **c}
                    for c in entry.candidates
                ]
        return []

    def fetched(self, series_id: str) -> dict[str, Any]:
        """A series with its observations, or an error record when the catalog lacks it."""
        series = self.series.get(series_id)
        if series is None:
            return {"series_id": series_id, "error": UNKNOWN_SERIES}
        return {"series_id": series_id, **series.model_dump(), "synthetic": True}


def build_server(catalog: Catalog, *, guidance: bool) -> FastMCP:
    """The server over a catalog; with guidance it publishes instructions."""
    server: FastMCP = FastMCP("BLS", instructions=INSTRUCTIONS if guidance else None)

    @server.tool(annotations={"readOnlyHint": True, "openWorldHint": False})
    def resolve(indicators: Annotated[list[Indicator], Field(min_length=1)]) -> dict[str, Any]:
        """Find the series that stand for each indicator: candidates ranked by confidence, 1.0 the surest."""
        results: list[dict[str, Any]] = []
        for asked in indicators:
            found = catalog.candidates(asked.indicator)
            note = {} if found else {"note": NOTHING_FOUND}
            results.append({"indicator": asked.indicator, "candidates": found, **note})
        return {"results": results}

    @server.tool(annotations={"readOnlyHint": True, "openWorldHint": False})
    def fetch_bls_data(series_ids: Annotated[list[str], Field(min_length=1)]) -> dict[str, Any]:
        """Fetch the latest observations of series by their IDs. The values are synthetic."""
        return {"series": [catalog.fetched(series_id) for series_id in series_ids]}

    return server


catalog_file = Path(__file__).with_name(os.environ.get("BLS_CATALOG", "catalog.json"))
mcp = build_server(
    Catalog.model_validate(json.loads(catalog_file.read_text(encoding="utf-8"))),
    guidance=os.environ.get("BLS_GUIDANCE") == "1",
)

if __name__ == "__main__":
    mcp.run(transport="stdio", show_banner=False, log_level="ERROR")
