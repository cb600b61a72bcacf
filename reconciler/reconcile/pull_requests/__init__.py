"""Pull requests of drafts: which are open, which need an update, and the calls to the forge.

The drivers of the forges are in `reconciler.forge`, and the texts in `reconciler.output`.
"""
