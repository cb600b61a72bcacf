"""The field-wise three-way merge of documents (kpt.md 7): what upstream changed since, upon what people changed here.

Knows no kinds of objects: which lists merge element by element is a Shape. Which documents belong together, and what
becomes of those that came or went, is decided in `packages/update`.
"""

from reconciler.krm.merge3.data import merge_data
from reconciler.krm.merge3.merge import Merged, merge3
from reconciler.krm.merge3.rules import COMPAT, SAFE, MergeError, MergeRules, Winner

__all__ = ["COMPAT", "SAFE", "MergeError", "MergeRules", "Merged", "Winner", "merge3", "merge_data"]
