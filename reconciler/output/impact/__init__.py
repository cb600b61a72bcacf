"""The impact of a config change on the fleet as text, Markdown and JSON data.

The package `planning/attribution` compares the two plans. This package groups and formats the differences.
"""
