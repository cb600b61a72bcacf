"""Explanations of a plan: the provenance of a value, renders from recorded inputs, impact, and validation.

Nothing here decides about a draft.
"""
