"""Where renders run: in this process, in others beside it, or on a Dask cluster; the bytes are the same everywhere."""
