"""The merge of files with SOPS documents."""

from __future__ import annotations

from reconciler.catalog.files import FileTree
from reconciler.krm.merge3 import MergeError, merge3
from reconciler.krm.merge3.rules import Conflict
from reconciler.krm.yaml import Document, YamlError
from reconciler.lazy_dataclasses import replace
from reconciler.packages.package import PackageResource, parse_resources
from reconciler.packages.parsing import ParseFailure
from reconciler.packages.sops import SOPS, check_sops_edit
from reconciler.packages.update.options import MergeOptions
from reconciler.packages.update.package_diff import is_same_content
from reconciler.packages.update.sides import MergeSides, UpdateResult
from reconciler.packages.update.whole_files import create_single_file_result, merge_whole_file, resolve_one_sided
from reconciler.packages.write_back import replace_documents


def merge_sops_file(sides: MergeSides, path: str, options: MergeOptions) -> UpdateResult:
    """Merge a file with a SOPS document. If both sides changed the file, the conflict policy selects the whole file.

    Merge comments, which kpt adds, do not count as a change of the local file.
    """
    origin, updated, local = (side.get(path) for side in sides)
    if origin and local and origin != updated and is_same_content(path, origin.data, local.data):
        return create_single_file_result(path, updated)
    if options.merges_sops_documents and resolve_one_sided(origin, updated, local) is None:
        merged = _merge_documents(sides, path, options)
        if merged:
            return merged
    return merge_whole_file(sides, path, options.rules.winner, SOPS)


def _merge_documents(sides: MergeSides, path: str, options: MergeOptions) -> UpdateResult | None:
    """Merge each document with the document at the same position in the other files.

    Return None if the files have different documents, or if SOPS could not decrypt a merged document.
    """
    origin, updated, local = (_read_resources(side, path) for side in sides)
    if not len(origin) == len(updated) == len(local):
        return None
    edits: list[tuple[PackageResource, Document]] = []
    conflicts: list[Conflict] = []
    for base, theirs, ours in zip(origin, updated, local, strict=True):
        schema = options.schemas.find_schema(ours.api_version, ours.kind)
        try:
            merged = merge3(base.document, theirs.document, ours.document, schema, options.rules)
            if merged.document is None or not base.is_sops == theirs.is_sops == ours.is_sops:
                return None
            check_sops_edit(ours.document, merged.document.data)
        except (MergeError, YamlError):
            return None
        edits.append((ours, merged.document))
        conflicts += (replace(conflict, file=path, resource=ours.key.reference) for conflict in merged.conflicts)
    files = FileTree({path: sides.local[path]})
    return UpdateResult(replace_documents(files, edits), tuple(conflicts))


def _read_resources(files: FileTree, path: str) -> tuple[PackageResource, ...]:
    resources = parse_resources("", path, files[path].data) if path in files else ()
    return () if isinstance(resources, ParseFailure) else resources
