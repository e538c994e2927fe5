"""Schedules and their nights."""
