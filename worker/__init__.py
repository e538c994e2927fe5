"""Runs one attempt in isolation and records what was observed; never judges."""
