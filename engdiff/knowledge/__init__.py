"""Canonical settings, and how knowledge that is kept as data is read."""
