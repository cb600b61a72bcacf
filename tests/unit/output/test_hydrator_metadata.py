"""Tests of hydrator.metadata: the same fields as Argo CD's hydrator, without empty fields."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reconciler.catalog.files import CommitId
from reconciler.output.commit_messages import DryCommit, format_hydrator_metadata

DRY = DryCommit(
    CommitId("c" * 40), "https://git.example.com/config", "Ada <ada@example.com>", 1_200_000_000, "Replicas"
)


def test_full_metadata_file() -> None:
    dry_commit = replace(DRY, message="Größe: 3 → 5\n\nThe fair.\n\nReviewed-by: Grace\n")

    assert format_hydrator_metadata(dry_commit).decode() == (
        '{\n  "repoURL": "https://git.example.com/config",\n'
        f'  "drySha": "{"c" * 40}",\n'
        '  "author": "Ada <ada@example.com>",\n  "date": "2008-01-10T21:20:00Z",\n'
        '  "subject": "Größe: 3 → 5",\n  "body": "The fair.\\n\\nReviewed-by: Grace"\n}\n'
    )


@pytest.mark.parametrize(
    ("dry", "absent"),
    [
        pytest.param(DRY, {"body"}, id="a-subject-alone"),
        pytest.param(replace(DRY, url=""), {"body", "repoURL"}, id="a-repository-of-this-machine"),
        pytest.param(replace(DRY, message="\n"), {"body", "subject"}, id="no-message"),
    ],
)
def test_empty_fields_are_omitted(dry: DryCommit, absent: set[str]) -> None:
    every = {"repoURL", "drySha", "author", "date", "subject", "body"}

    assert json.loads(format_hydrator_metadata(dry)).keys() == every - absent
