"""Decides what runs when; never runs a model."""
