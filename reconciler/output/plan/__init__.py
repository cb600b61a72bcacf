"""The plan as text, Markdown and JSON data. It shows the drafts, removals and findings of a pass without side effects.

The decisions themselves are in `planning/`.
"""
