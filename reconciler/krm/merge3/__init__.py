"""Three-way merge of one YAML document, field by field.

Merge schemas determine which lists are merged element by element. This package does not match documents of the three
sides, and does not merge whole files. The package `packages/update` does both.
"""

from reconciler.krm.merge3.data import merge_data
from reconciler.krm.merge3.merge import DocumentMergeResult, merge3
from reconciler.krm.merge3.rules import COMPAT, SAFE, MergeError, MergeRules, Winner

__all__ = ["COMPAT", "SAFE", "DocumentMergeResult", "MergeError", "MergeRules", "Winner", "merge3", "merge_data"]
