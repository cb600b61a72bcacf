"""Adoption of packages without a Kptfile: only differences from a clean render are local changes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.planning.model.adoption import build_adopted_package

SOURCE = "# The port.\napiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec:\n  port: 80\n"
CLEAN = SOURCE.replace("80", "90")
EXISTING = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {port:   90}  # own text\n"


def tree(files: Mapping[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def adopt(existing: Mapping[str, str], source: str = SOURCE, clean: str = CLEAN) -> tuple[str, str]:
    """Return the texts of the file in the render and in the source that contains the local changes."""
    package = build_adopted_package(
        tree(existing), tree({"web.yaml": source}), tree({"web.yaml": clean, "Kptfile": "kind: Kptfile\n"})
    )
    assert "Kptfile" not in package.rendered
    assert package.base == tree({"web.yaml": source})
    return tuple(files["web.yaml"].data.decode() for files in (package.rendered, package.merged))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("existing", "rendered", "merged"),
    [
        ({"web.yaml": CLEAN}, CLEAN, SOURCE),
        ({"web.yaml": EXISTING}, EXISTING, EXISTING.replace("90", "80")),
        ({"web.yaml": CLEAN.replace("90", "95")}, CLEAN, SOURCE),
        ({"other.yaml": EXISTING}, CLEAN, SOURCE),
        ({"web.yaml": f"{EXISTING}---\n{EXISTING}"}, CLEAN, SOURCE),
        ({"web.yaml": "a: ["}, CLEAN, SOURCE),
    ],
    ids=["equal", "other-text", "other-value", "missing", "other-documents", "invalid"],
)
def test_equal_data_keeps_its_text_and_is_no_local_change(
    existing: Mapping[str, str], rendered: str, merged: str
) -> None:
    assert adopt(existing) == (rendered, merged)


@pytest.mark.parametrize(("existing", "expected"), [("text\n", "text\n"), ("other\n", "text\n")])
def test_other_files_are_compared_by_their_content(existing: str, expected: str) -> None:
    package = build_adopted_package(tree({"a: b": existing}), tree({"a: b": "text\n"}), tree({"a: b": "text\n"}))

    assert package.rendered == tree({"a: b": expected})
