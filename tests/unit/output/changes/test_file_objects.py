"""Tests of file objects: equal files are parsed and compared once."""

import pytest

from reconciler.output.changes.objects import read_file_objects
from reconciler.output.changes.package_changes import compare_packages
from tests.unit.output.builders import build_tree, format_deployment, format_endpoints, format_kptfile


@pytest.mark.parametrize(
    ("path", "content", "names", "only_objects"),
    [
        pytest.param(
            "a.yaml",
            format_deployment() + "---\n" + format_endpoints(),
            ["web", "endpoints"],
            True,
            id="in-their-order",
        ),
        pytest.param("a.yaml", format_deployment() + "---\nsize: 1\n", ["web"], False, id="beside-another-document"),
        pytest.param("a.yaml", "size: 1\n", [], False, id="no-object"),
        pytest.param("a.yaml", "", [], True, id="nothing-at-all"),
        pytest.param("a.yaml", "a: [", [], False, id="unparsable"),
        pytest.param("a.txt", format_deployment(), [], False, id="no-krm-file"),
        pytest.param("Kptfile", format_kptfile("v1"), [], False, id="the-kptfile"),
        pytest.param("sub/Kptfile", format_kptfile("v1"), [], False, id="a-kptfile-below"),
        pytest.param("notKptfile.yaml", format_endpoints(), ["endpoints"], True, id="another-file-that-ends-so"),
    ],
)
def test_file_objects(path: str, content: str, names: list[str], only_objects: bool) -> None:
    file_content = read_file_objects(path, content.encode())

    assert ([file_object.key.name for file_object in file_content.objects], file_content.has_only_objects) == (
        names,
        only_objects,
    )


def test_equal_files_are_parsed_once() -> None:
    file_content, other = (
        read_file_objects("a.yaml", bytes(bytearray(format_deployment(), "utf-8"))) for _ in range(2)
    )

    assert file_content is other


def test_equal_files_are_compared_once_for_all_packages() -> None:
    packages = [
        (
            build_tree({"a.yaml": format_deployment(3), "b.yaml": format_endpoints(name)}),
            build_tree({"a.yaml": format_deployment(5)}),
        )
        for name in ("one", "two")
    ]
    first, second = (compare_packages(before, after).objects for before, after in packages)

    assert [change.format_line() for change in first] == [
        "ConfigMap endpoints: removed",
        "Deployment web: replicas 3 → 5",
    ]
    assert first[1] is second[1]
