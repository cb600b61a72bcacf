"""Tests of the classification of Git's error messages."""

from __future__ import annotations

import pytest

from reconciler.git import errors
from reconciler.git.errors import GitError, classify_failure


@pytest.mark.parametrize(
    ("words", "kind", "step"),
    [
        pytest.param("fatal: Authentication failed for 'https://e.com/'", "AccessDenied", "human", id="password"),
        pytest.param(
            "git@e.com: Permission denied (publickey).\nfatal: Could not read from remote repository.",
            "AccessDenied", "human", id="ssh-key",
        ),
        pytest.param(
            "Host key verification failed.\nfatal: Could not read from remote repository.",
            "HostUntrusted", "human", id="host-key",
        ),
        pytest.param(
            "fatal: unable to access 'https://e.com/': server certificate verification failed.",
            "HostUntrusted", "human", id="certificate",
        ),
        pytest.param("fatal: detected dubious ownership in repository at '/a'", "HostUntrusted", "human", id="owner"),
        pytest.param("remote: Repository not found.", "RepositoryMissing", "human", id="not-found"),
        pytest.param("fatal: '/a' does not appear to be a git repository", "RepositoryMissing", "human", id="no-repo"),
        pytest.param("fatal: unable to access 'x': Could not resolve host: e.com", "Unreachable", "retry", id="dns"),
        pytest.param("ssh: connect to host e.com port 22: Connection refused", "Unreachable", "retry", id="refused"),
        pytest.param("fatal: the remote end hung up unexpectedly", "Unreachable", "retry", id="hung-up"),
        pytest.param("error: 503", "Unreachable", "retry", id="host-down"),
        pytest.param("remote: API rate limit exceeded\nerror: 403", "RateLimited", "wait", id="rate-limit-before-403"),
        pytest.param("fatal: bad object refs/heads/x", "MirrorCorrupt", "human", id="corrupt"),
        pytest.param("fatal: write error: No space left on device", "CacheUnusable", "human", id="full-disk"),
        pytest.param("remote: No space left on device", "GitFailed", "retry", id="full-disk-of-the-host"),
        pytest.param("something new", "GitFailed", "retry", id="unknown"),
    ],
)  # fmt: skip
def test_classify_failure(words: str, kind: str, step: str) -> None:
    error = classify_failure(words)("message")

    assert type(error).__name__ == f"{kind}Error"
    assert error.next_step == step


def _list_subclasses(kind: type[GitError]) -> list[type[GitError]]:
    return [item for direct in kind.__subclasses__() for item in (direct, *_list_subclasses(direct))]


def test_diagram_contains_every_error_with_its_next_step() -> None:
    drawn = {line.split()[1]: line.split()[3] for line in (errors.__doc__ or "").splitlines() if "── " in line}

    assert drawn == {kind.__name__: kind.next_step for kind in _list_subclasses(GitError)}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(errors.UnreachableError, "no way (next step: retry)", id="retry"),
        pytest.param(
            errors.MirrorBusyError,
            "no way (next step: wait until this process ends, or end it)",
            id="wait-for-a-process",
        ),
        pytest.param(
            errors.AccessDeniedError,
            "no way (next step: check the credentials and their permissions)",
            id="action-by-a-person",
        ),
        pytest.param(errors.PathRefusedError, "no way", id="the-message-contains-the-action"),
    ],
)
def test_full_message_contains_the_next_step(kind: type[GitError], expected: str) -> None:
    assert kind("no way").full_message == expected
