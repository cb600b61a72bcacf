"""The remote repositories of a pass: fetches, pushes and back-off, and reading of objects, states and drafts.

The parent package writes the commits of drafts and states.
"""
