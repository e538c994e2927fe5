"""Conversations by fixed rules: scored, compared, brought in, handed out."""
