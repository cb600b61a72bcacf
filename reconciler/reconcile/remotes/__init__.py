"""Remote repositories of a pass: fetch and push with back-off, read objects, states and drafts of targets.

Commits of drafts and states are built in the parent package.
"""
