"""The file `hydrator.metadata`: which commit of the config a draft was made of, as Argo CD's hydrator tells it."""

from __future__ import annotations

import json
from dataclasses import dataclass

from reconciler.krm.dates import rfc3339
from reconciler.snapshot.objects import CommitId


@dataclass(frozen=True)
class DryCommit:
    """A commit of the config: `url` is where it can be found, without credentials, "" where only this machine knows.

    `author` is name and address as Git writes them, `seconds` the author's date.
    """

    commit: CommitId
    url: str
    author: str
    seconds: int
    message: str


def metadata_file(dry: DryCommit) -> bytes:
    """Return the file's bytes; what is empty is left out, as its readers expect."""
    subject, _, body = dry.message.strip().partition("\n")
    told = {
        "repoURL": dry.url,
        "drySha": dry.commit,
        "author": dry.author,
        "date": rfc3339(dry.seconds),
        "subject": subject.strip(),
        "body": body.strip(),
    }
    kept = {name: value for name, value in told.items() if value}
    return (json.dumps(kept, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")
