"""Suites and plugins as they stand on this machine: locked, promoted, patched."""
