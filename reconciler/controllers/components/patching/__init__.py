"""Patches of addons: paths, operations, targets, and the record of which addon wrote which value.

These modules do not evaluate expressions and do not depend on schemas.
"""
