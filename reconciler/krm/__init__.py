"""The alphabet: resources, lossless YAML, pointers, patches, selectors, names, conditions, findings, provenance.

Knows none of our kinds, and is quiet: no Git, clock, file, process, thread or log.
"""
