"""Open drafts, results of review actions, and pull requests as text, Markdown and JSON data.

The actions themselves are in `review/`, and pull requests are opened by `reconcile/` and `forge/`.
"""
