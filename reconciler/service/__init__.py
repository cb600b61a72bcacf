"""The long-lived service: wake-ups, delays between passes, signals and shutdown.

A single pass is in `reconciler.reconcile`. The HTTP server is in `reconciler.server`.
"""
