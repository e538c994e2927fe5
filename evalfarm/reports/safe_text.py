"""Text that a model or a tool wrote, made harmless to a terminal and to Markdown, and short enough to read."""

import re

# C0 but newline and tab, DEL, C1; marks that turn the reading direction; halves of surrogate pairs.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_SPECIAL = re.compile(r"([\\`*_{}\[\]|#~])")


def harmless(text: str) -> str:
    r"""The text with every character that could steer a terminal written out, as `\x1b` or `\u202e`."""
    return _UNSAFE.sub(_written_out, text)


def one_line(text: str) -> str:
    """Harmless, and every run of white space a single space."""
    return " ".join(harmless(text).split())


def in_markdown(text: str) -> str:
    """Text as Markdown shows it: on one line, with no mark-up, no HTML and no mention in it."""
    plain = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # Last, for its own `#` must stay: an `@name` left as it is would notify whoever has that name.
    return _SPECIAL.sub(r"\\\1", plain).replace("@", "&#64;")


def in_json(document: str) -> str:
    r"""A JSON document with the same value and nothing in it that could steer a terminal: `\u009b` for C1's CSI."""
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", document)


def cut(text: str, most: int) -> str:
    """At most `most` characters of a text, and the count of those cut off."""
    left_out = len(text) - most
    return text if left_out <= 0 else f"{text[:most]} … ({left_out:,} more characters)"


def _written_out(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
