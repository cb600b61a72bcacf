"""Review commands: list, show, propose, approve and reject drafts.

Passes are in `reconciler.reconcile`. The decision whether an action is possible is in `reconciler.planning.lifecycle`.
"""
