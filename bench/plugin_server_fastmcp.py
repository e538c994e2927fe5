"""The benchmark's plugin as most are written: one tool, served by FastMCP over stdio."""

from fastmcp import FastMCP

mcp = FastMCP("bench")


@mcp.tool
def lookup(key: str) -> dict[str, str]:
    """Look a key up."""
    return {"key": key, "found": "42"}


if __name__ == "__main__":
    mcp.run(show_banner=False)
