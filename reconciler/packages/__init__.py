"""The kpt engine: packages, Kptfiles, the function pipeline and the functions that run in process."""
