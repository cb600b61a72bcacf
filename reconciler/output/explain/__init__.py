"""Explanations of values as text and JSON."""
