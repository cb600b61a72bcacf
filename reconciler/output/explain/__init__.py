"""Formats explanations of values, and results of the commands `verify` and `why`, as text and JSON data."""
