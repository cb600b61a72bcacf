"""Clients for the pull requests of GitHub, GitLab and Gitea. All clients implement the Protocol `Forge`.

This package and `reconciler.notifications` import an HTTP client. The code that decides which pull requests to open
is in `reconciler.reconcile`.
"""
