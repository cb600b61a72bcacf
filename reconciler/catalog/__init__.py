"""File trees, the catalog of the config objects in one commit, and traces: the objects that each render depends on.

Controllers read objects from the catalog. This package contains no code for single controllers.
"""
