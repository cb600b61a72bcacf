"""Explanations of a plan: the provenance of a value, re-rendering from recorded inputs, impact, and validation of
rendered packages. Nothing here decides about a draft.
"""
