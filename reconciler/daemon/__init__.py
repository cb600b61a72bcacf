"""When: triggers, passes, back-off and signals around one reconcile."""
