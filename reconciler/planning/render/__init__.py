"""Rendering of one package from its source, its configuration and its local changes.

Decisions about drafts do not belong here.
"""
