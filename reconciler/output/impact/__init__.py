"""The impact of a config change on the fleet as text, Markdown and JSON data.

The two plans are compared in `planning/attribution/`. This folder groups, explains and formats the differences.
"""
