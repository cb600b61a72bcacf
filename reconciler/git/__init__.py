"""Git access: mirrors, bulk reads and writes of objects, atomic pushes, and plain folders on disk.

Only this package imports the third-party package `git` and starts git processes. It uses no work tree, HEAD or index.
"""
