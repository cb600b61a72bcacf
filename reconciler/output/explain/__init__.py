"""Explanations of values, results of `verify`, and results of `why`, as text and JSON data."""
