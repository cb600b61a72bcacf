"""The commands that only read repositories: explain, why, verify, impact, validate and report.

This package computes the results and writes to no repository. The package `reconciler.output` formats the results.
"""
