"""One reconcile pass: fetch, snapshot, plan, commit, push, pull requests and status.

The loop around passes is in `reconciler.service`. Decisions about packages are in `reconciler.planning`.
"""
