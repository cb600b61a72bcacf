"""Decisions: which packages are drafted, kept, deleted or blocked on each target. Reading of branches and rendering do
not belong here.
"""
