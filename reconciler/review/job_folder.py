"""The folder of the cache with the jobs of the console, one file for each job."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.git.filesystem import replace_file
from reconciler.review.review_job import ReviewJob
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from pydantic import TypeAdapter


class JobFolder:
    """Stores jobs for later processes. An error is logged and not raised, because Git contains the results too."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def _adapter(self) -> TypeAdapter[ReviewJob]:
        from pydantic import TypeAdapter

        return TypeAdapter(ReviewJob)

    def read_all(self) -> tuple[ReviewJob, ...]:
        """Return the stored jobs, the oldest job first. Files that cannot be read are skipped."""
        return tuple(sorted(self._read_files(), key=lambda job: job.created_at))

    def _read_files(self) -> Iterator[ReviewJob]:
        for file in self._folder.glob("*.json"):
            try:
                yield self._adapter.validate_json(file.read_bytes())
            except (OSError, ValueError) as error:
                # A different version of the program can have written the file.
                log.warning("review_job_unreadable", file=str(file), message=type(error).__name__)

    def write(self, job: ReviewJob) -> None:
        """Store a job. An earlier file of the job is replaced."""
        file = self._get_file(job.id)
        try:
            replace_file(file, self._adapter.dump_json(job).decode())
        except OSError as error:
            log.warning("review_job_store_failed", file=str(file), message=error.strerror)

    def delete(self, job_id: str) -> None:
        """Delete the file of a job."""
        file = self._get_file(job_id)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            log.warning("review_job_store_failed", file=str(file), message=error.strerror)

    def _get_file(self, job_id: str) -> Path:
        return self._folder / f"{job_id}.json"
