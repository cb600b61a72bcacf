"""Three-way merge of one YAML document, field by field.

The three sides are `origin` (the version before both changes), `local` (with local changes) and `updated` (the new
version of upstream). Merge schemas determine which lists are merged element by element. The package `packages/update`
matches the documents of the three sides, and merges whole files.
"""

from reconciler.krm.merge3.data import merge_data
from reconciler.krm.merge3.merge import DocumentMergeResult, merge3
from reconciler.krm.merge3.rules import COMPAT, SAFE, MergeError, MergeRules, Winner

__all__ = ["COMPAT", "SAFE", "DocumentMergeResult", "MergeError", "MergeRules", "Winner", "merge3", "merge_data"]
