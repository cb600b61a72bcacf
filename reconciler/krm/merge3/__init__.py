"""Field-wise three-way merge of one YAML document.

Merge schemas determine which lists are merged by element. The folder `packages/update` determines which documents
belong together, and handles added and removed documents.
"""

from reconciler.krm.merge3.data import merge_data
from reconciler.krm.merge3.merge import DocumentMergeResult, merge3
from reconciler.krm.merge3.rules import COMPAT, SAFE, MergeError, MergeRules, Winner

__all__ = ["COMPAT", "SAFE", "DocumentMergeResult", "MergeError", "MergeRules", "Winner", "merge3", "merge_data"]
