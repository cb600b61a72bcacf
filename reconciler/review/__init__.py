"""Review commands: list, show, propose, approve and reject drafts.

`reconciler.planning.lifecycle` checks whether an action is possible. `reconciler.reconcile` contains the passes.
"""
