"""The long-running service: wake-ups, delays between passes, signals and shutdown.

The package `reconciler.reconcile` contains a single pass. The package `reconciler.server` contains the HTTP server.
"""
