"""Decisions for each target: which packages are drafted, kept, deleted or blocked.

Code that reads branches or renders packages does not belong here.
"""
