"""Executors: where renders run. A render runs in this process, in a local worker process, or on a Dask cluster.

The output bytes are equal in all three places. The decision which packages to render does not belong here.
"""
