"""Executors, which render packages in local worker processes or on a Dask cluster.

Both kinds of executors produce the same bytes as a render in the main process. Other modules decide which packages are
rendered.
"""
