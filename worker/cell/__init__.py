"""The place in which one attempt of Codex runs, and Codex itself: which one, its home, the plugin in it.

cell           the sealed cell around the product, its two doors outward
in_cell        the first program inside, which opens the doors and becomes the product
codex_runtime  which Codex is measured
codex_home     a home with the plugin installed, made once, cloned for every attempt
codex_plugin   the plugin as Codex packages it
"""
