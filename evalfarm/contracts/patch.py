"""A working tree in the place of a released plugin: what a run's manifest says of it."""

from evalfarm.contracts.base import Contract, Name


class PluginPatch(Contract):
    """What was run in the place of the plugin's folder that the suite names."""

    plugin: Name
    variants: tuple[Name, ...]  #: those that run it: a variant with a plugin folder of its own does not
    version: str  #: that the tree's plugin.json says
    digest: str  #: of the tree: path -> content, and whether it is a program
    released: str | None  #: likewise of the folder that the suite names; None: it names none
    released_version: str  #: the suite's plugin.version
    patched_at: float  #: seconds since the epoch
    rebuilt: tuple[str, ...] = ()  #: why attempts are not cloned from the home that it was installed into
