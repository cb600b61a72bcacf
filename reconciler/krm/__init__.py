"""Building blocks for Kubernetes resources: lossless YAML, merges, schemas, selectors, names and findings.

This package contains no code for the API kinds of the controllers. Its functions do not use Git, the clock, files,
processes, threads or the log.
"""
