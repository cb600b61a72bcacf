"""Adoption of a package that the reconciler never rendered: which existing content is a local change.

The existing files are compared with a clean render, which is a render of the source as if the package did not exist. If
an existing file has the same data as the file in the clean render, the data is not a local change. The comments, quotes
and key order of the existing file are still kept.
"""

from __future__ import annotations

from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml import YamlFile
from reconciler.lazy_dataclasses import replace
from reconciler.packages.parsing import edit_document, parse_cached
from reconciler.planning.model.sources import BranchPackage


def build_adopted_package(existing: FileTree, source: FileTree, clean: FileTree) -> BranchPackage:
    """Return the package on the branch as if the reconciler had rendered it.

    Args:
        existing: The files on the branch.
        source: The files of the upstream.
        clean: The render of the source as if the package did not exist.
    """
    # Omit the files that only the render contains, such as the Kptfile. Otherwise, they would count as files that a
    # person deleted.
    rendered = {path: file for path, file in clean.items() if path in source or path in existing}
    merged = dict(source)
    for path in existing:
        if path in clean and path in source:
            text = _write_with_text_of(existing[path], source[path], clean[path])
            if text is not None:
                rendered[path], merged[path] = existing[path], text
    merged_files = FileTree(merged)
    return BranchPackage(existing, FileTree(rendered), merged_files, merged_files, source)


def _write_with_text_of(existing: File, source: File, clean: File) -> File | None:
    """Return a file with the data of `source`, and with the comments, quotes and key order of `existing`.

    `clean` is the rendered file. Return None if the data of `existing` differs from the data of `clean`.
    """
    files = [parse_cached(file.data) for file in (existing, source, clean)]
    parsed = [file for file in files if isinstance(file, YamlFile)]
    if len(parsed) < len(files):
        return existing if existing == clean == source else None
    own, upstream, expected = ([document.data for document in file.documents] for file in parsed)
    if own != expected or len(own) != len(upstream):
        return None
    result = parsed[0]
    for index, (document, data) in enumerate(zip(parsed[0].documents, upstream, strict=True)):
        if document.data != data:
            result = result.replace(index, edit_document(document, data))
    return replace(existing, data=result.to_bytes())
