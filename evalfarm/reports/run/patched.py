"""What is said of a run whose plugin was patched."""

from evalfarm.contracts.patch import PluginPatch

_DIGITS = 12
_AGAIN = "what attempts were cloned from holds the same patch, by its digest."


def lines(patch: PluginPatch | None) -> tuple[str, ...]:
    """What was run in place of what; then why the template home is another than the patch was installed into."""
    if patch is None:
        return ()
    return (f"PATCHED: {told(patch)}.", *(f"PATCH REBUILT: {why}; {_AGAIN}" for why in patch.rebuilt))


def told(patch: PluginPatch) -> str:
    """What was run in place of what, without a full stop."""
    released = "a plugin made around the server" if patch.released is None else f"the released {_short(patch.released)}"
    return (
        f"plugin {patch.plugin} is a working tree, {_short(patch.digest)} (version {patch.version or 'none'}),"
        f" in place of {released} (version {patch.released_version})"
    )


def _short(content: str) -> str:
    return content.removeprefix("sha256:")[:_DIGITS]
