"""Tests of subcharts that are archives in a chart: their files, nested archives, and limits."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.lazy_dataclasses import replace
from reconciler.sources.errors import SourceError
from reconciler.sources.limits import SourceLimits
from reconciler.sources.subcharts import unpack_subcharts

LIMITS = SourceLimits()


def build_archive(files: Mapping[str, bytes]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return content.getvalue()


def build_tree(files: Mapping[str, bytes]) -> FileTree:
    return FileTree({path: File(data) for path, data in files.items()})


INNER = build_archive({"inner/Chart.yaml": b"name: inner\n"})
OUTER = build_archive({"db/Chart.yaml": b"name: db\n", "db/charts/inner-0.1.0.tgz": INNER})


def test_archives_are_unpacked() -> None:
    chart = build_tree(
        {
            "Chart.yaml": b"name: web\n",
            "charts/db-1.0.0.tgz": OUTER,
            "charts/local/charts/inner.tgz": INNER,
            "charts/_skipped.tgz": b"",
            "files/charts.tgz": b"",
        }
    )

    assert unpack_subcharts(chart, LIMITS) == build_tree(
        {
            "Chart.yaml": b"name: web\n",
            "charts/_skipped.tgz": b"",
            "charts/db-1.0.0/Chart.yaml": b"name: db\n",
            "charts/db-1.0.0/charts/inner-0.1.0/Chart.yaml": b"name: inner\n",
            "charts/local/charts/inner/Chart.yaml": b"name: inner\n",
            "files/charts.tgz": b"",
        }
    )


def test_chart_without_archives_is_unchanged() -> None:
    chart = build_tree({"Chart.yaml": b"", "charts/db/Chart.yaml": b""})

    assert unpack_subcharts(chart, LIMITS) is chart


@pytest.mark.parametrize(
    ("files", "limits", "code"),
    [
        pytest.param({"charts/a.tgz": b"no archive"}, LIMITS, "ArchiveInvalid", id="damaged"),
        pytest.param({"charts/a.tgz": OUTER}, replace(LIMITS, files=1), "SourceTooLarge", id="files"),
        pytest.param({"a": b"12", "b": b"34"}, replace(LIMITS, unpacked_bytes=3), "SourceTooLarge", id="bytes"),
        pytest.param({"a": b"", "b": b""}, replace(LIMITS, files=1), "SourceTooLarge", id="files-of-a-folder"),
    ],
)
def test_refused_charts(files: dict[str, bytes], limits: SourceLimits, code: str) -> None:
    with pytest.raises(SourceError) as caught:
        unpack_subcharts(build_tree(files), limits)

    assert caught.value.code == code


def test_archives_in_many_levels_are_refused() -> None:
    archive = INNER
    for _ in range(9):
        archive = build_archive({"x/Chart.yaml": b"name: x\n", "x/charts/x.tgz": archive})

    with pytest.raises(SourceError, match="nested levels of archives"):
        unpack_subcharts(build_tree({"charts/x.tgz": archive}), LIMITS)
