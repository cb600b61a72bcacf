"""Read-only commands: explain, why, verify, impact, validate and report.

Nothing here writes to a repository. The text of the results is in `reconciler.output`.
"""
