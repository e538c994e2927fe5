"""evalfarm: how well, how steadily and why a plugin works inside the product it ships in."""

__version__ = "0.1.0"
