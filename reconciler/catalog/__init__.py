"""Read one config commit: its file tree, the catalog of its config objects, and the trace of each render.

Controllers read objects from the catalog. This package contains no rules of controllers.
"""
