"""Judges and people: calibrated, asked, disagreed with, decided on."""
