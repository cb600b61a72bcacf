"""Patches of addons: paths, operations, targets, and the tracking of which addon wrote which value.

These modules work on rendered data. They do not depend on templates or schemas.
"""
