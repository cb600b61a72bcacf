"""Reads, creates and updates the pull requests of drafts through forges.

The drivers of the forges are in `reconciler.forge`. The texts of pull requests are in `reconciler.output`.
"""
