"""The plan of a pass as text, Markdown and JSON data: drafts, removals and findings.

The package `planning` makes the decisions. This package only formats the decisions.
"""
