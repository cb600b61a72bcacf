"""Open drafts, results of review actions, and pull requests as text, Markdown and JSON data.

The package `review` performs the actions. The packages `reconcile` and `forge` open pull requests.
"""
