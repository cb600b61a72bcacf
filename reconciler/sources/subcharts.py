"""Unpacks the subcharts that a chart contains as archives, so that all templates of the chart can be read."""

from __future__ import annotations

import re

from reconciler.catalog.files import FileTree
from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.archives import read_archive
from reconciler.sources.errors import SourceError
from reconciler.sources.limits import SourceLimits

# As helm, skip archives whose names begin with "_" or ".".
_ARCHIVE = re.compile(r"((?:.*/)?charts/)([^/._][^/]*)\.tgz")
_MAX_DEPTH = 8


def unpack_subcharts(chart: FileTree, limits: SourceLimits) -> FileTree:
    """Return the chart with the files of the archives in its folders `charts`, and without these archives.

    Raises:
        SourceError: An archive is damaged, or the unpacked chart exceeds a limit.
    """
    for _ in range(_MAX_DEPTH):
        _check_size(chart, limits)
        archives = {path: match for path in chart if (match := _ARCHIVE.fullmatch(path))}
        if not archives:
            return chart
        chart = chart.without_files(*archives).with_files(
            {
                f"{match[1]}{match[2]}/{name}": file
                for path, match in archives.items()
                for name, file in read_archive(chart[path].data, limits, has_top_folder=True).files.items()
            }
        )
    message = f"a chart must contain at most {_MAX_DEPTH - 1} nested levels of archives"
    raise SourceError(SourceCodes.SOURCE_TOO_LARGE.name, message)


def _check_size(chart: FileTree, limits: SourceLimits) -> None:
    if len(chart) > limits.files:
        raise limits.create_error("files", "the number of files of the chart with its subcharts")
    if chart.byte_count > limits.unpacked_bytes:
        raise limits.create_error("unpacked_bytes", "the size of the chart with its subcharts")
