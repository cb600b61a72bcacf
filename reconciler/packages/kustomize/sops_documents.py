"""SOPS documents in the output of an overlay.

Kustomize sorts the keys of each document, so that SOPS cannot decrypt the document any more. Therefore, this module
restores the bytes of the source file. If an overlay changes a SOPS document, the result is an error.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.catalog.files import FileTree
from reconciler.krm.yaml import Document, YamlError, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.charts.package_files import PackageFile, RenderedPackage
from reconciler.packages.sops import SOPS, is_sops_document
from reconciler.packages.source_codes import SourceCodes


def restore_sops_documents(package: RenderedPackage, source: FileTree) -> None:
    """Replace each SOPS document in the output of a build by the bytes of the equal document in the source.

    A document that the overlay changes is an error, because SOPS could not decrypt it.
    """
    outputs = {index: document for index, file in enumerate(package.files) if (document := _read_sops(file.data))}
    if not outputs:
        return
    inputs = list(_iterate_inputs(source))
    for index, document in outputs.items():
        file = package.files[index]
        found = next((entry for entry in inputs if is_equal_data(entry.document.data, document.data)), None)
        if found:
            package.files[index] = replace(file, data=found.text)
        else:
            package.findings.append(SourceCodes.SOPS_MAC_BROKEN.finding(_explain_change(package, file), file.location))


def _explain_change(package: RenderedPackage, file: PackageFile) -> str:
    return (
        f"{package.label} changes the SOPS document {file.label}, for example its namespace, name or labels, so that"
        " SOPS could not decrypt it. Next step: exclude the document from the change, or encrypt it with the final"
        " content"
    )


@dataclass(frozen=True)
class _SopsInput:
    document: Document
    text: bytes


def _iterate_inputs(source: FileTree) -> Iterator[_SopsInput]:
    for file in source.values():
        if SOPS.encode() not in file.data:
            continue
        try:
            documents = parse_yaml(file.data).documents
        except YamlError:
            continue  # Kustomize has built the overlay. Therefore, this invalid file is not one of its resources.
        for document in documents:
            if is_sops_document(document.data):
                yield _SopsInput(document, file.data if len(documents) == 1 else document.text.encode())


def _read_sops(data: bytes) -> Document | None:
    document = parse_yaml(data).documents[0] if SOPS.encode() in data else None
    return document if document and is_sops_document(document.data) else None
