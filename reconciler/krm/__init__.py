"""Building blocks for Kubernetes resources: lossless YAML, merges, schemas, selectors, names and findings.

This package does not know the kinds that the controllers read. It has no side effects: no Git, clock, file, process,
thread or log.
"""
