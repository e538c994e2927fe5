"""Nights: when a schedule is due, what becomes of it, and who is told. The decisions are pure."""
