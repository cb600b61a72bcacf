"""Content of a config commit: file trees, the catalog of config objects, and the traces of its use by renders.

Controllers read objects from the catalog. This package contains no rules of controllers.
"""
