"""Local changes of users to a branch: files of any mode, symbolic links and submodules, as bytes."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.git_environment import HERMETIC
from tests.support.git_repositories import git

FILE, EXECUTABLE, LINK, SUBMODULE = "100644", "100755", "120000", "160000"


@dataclass(frozen=True)
class Entry:
    """One file of a branch: its Git mode and its bytes. The bytes of a link are its target, of a submodule its
    commit.
    """

    mode: str
    data: bytes


# The files of a branch by path. None in a change removes a file.
Entries = Mapping[str, Entry]
Change = Mapping[str, Entry | None]


def read_entries(repository: Path, commit: str, folder: str = "") -> dict[str, Entry]:
    """Return all entries below a folder of a commit by their relative path, including links and submodules."""
    listed = git(repository, "ls-tree", "-r", "-z", "--full-tree", f"{commit}:{folder}", check=False)
    rows = [row.partition("\t") for row in listed.split("\0") if row]
    mapping = {path: head.split() for head, _, path in rows}
    blobs = {path: words[2] for path, words in mapping.items() if words[1] == "blob"}
    contents = _read_blobs(repository, list(dict.fromkeys(blobs.values())))
    return {
        path: Entry(words[0], contents[words[2]] if path in blobs else words[2].encode())
        for path, words in mapping.items()
    }


def _read_blobs(repository: Path, ids: list[str]) -> dict[str, bytes]:
    if not ids:
        return {}
    command, result = ["git", "cat-file", "--batch"], "".join(f"{entry}\n" for entry in ids).encode()
    process = subprocess.run(command, cwd=repository, env=HERMETIC, input=result, capture_output=True, check=True)
    output, start = process.stdout, 0
    mapping: dict[str, bytes] = {}
    for item in ids:
        end = output.index(b"\n", start)
        size = int(output[start:end].split()[2])
        mapping[item] = output[end + 1 : end + 1 + size]
        start = end + 1 + size + 1
    return mapping


def commit_entries(repository: Path, ref: str, changes: Change, message: str = "by hand") -> str:
    """Commit changes of files of any mode on top of a ref, as a person does; return the commit."""
    parent = git(repository, "rev-parse", "--verify", ref)
    stream = [f"commit {ref}\ncommitter Ada <ada@example.com> 1100000000 +0000\n".encode()]
    stream.append(f"data {len(message)}\n{message}\nfrom {parent}\n".encode())
    # Deletions come first, so that a new file can replace a folder.
    for path, entry in sorted(changes.items(), key=lambda values: values[1] is not None):
        quoted = b'"' + path.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'
        if entry is None:
            stream.append(b"D %s\n" % quoted)
        elif entry.mode == SUBMODULE:
            stream.append(b"M 160000 %s %s\n" % (entry.data, quoted))
        else:
            head = b"M %s inline %s\ndata %d\n" % (entry.mode.encode(), quoted, len(entry.data))
            stream.append(head + entry.data + b"\n")
    git(repository, "fast-import", "--quiet", "--date-format=raw", stdin=b"".join(stream))
    return git(repository, "rev-parse", "--verify", ref)
