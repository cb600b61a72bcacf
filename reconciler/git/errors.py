"""Errors of Git, of the mirror cache and of local folders. No message contains credentials.

The table contains the `next_step` and the cause of each class. The step "human" means an action by a person.

GitError                  | next step
├── UnreachableError      | retry | the host does not answer
├── GitTimeoutError       | retry | a Git call took longer than `timeout_seconds`
├── GitFailedError        | retry | Git failed, and no other class describes the reason
├── MirrorBusyError       | wait  | another process holds the mirror's lock
├── RateLimitedError      | wait  | the host limits the number of calls
├── InterruptedGitError   | retry | the daemon ended the Git process
├── RemoteBusyError       | wait  | an earlier fetch from or push to the remote has not ended
├── AccessDeniedError     | human | credentials are missing, wrong, or not sufficient
├── ReadOnlyRemoteError   | human | the settings contain no credentials for pushes to the remote
├── HostUntrustedError    | human | a host key, certificate or repository owner is not trusted
├── RepositoryMissingError | human | there is no repository at this address
├── UrlRefusedError       | human | the address is malformed, or not in the allow-list
├── CredentialInUrlError  | human | the address contains a user name, password or token
├── ObjectMissingError    | human | a Git object or ref does not exist
├── OfflineError          | human | `--offline` is set, and the data is not in the cache
├── TooLargeError         | human | an object or tree exceeds a limit
├── TreeMalformedError    | human | a tree has entries that a file system cannot store
├── PathRefusedError      | human | a path is not allowed in a tree, or must not be written
├── SigningFailedError    | human | a commit or tag could not be signed
├── UnverifiedCommitError | human | no commit with a valid signature can be used
├── SymbolicRefError      | human | a ref of the remote is symbolic, so that a push moves another branch
├── FolderChangedError    | retry | the folder changed during the operation
├── MirrorCorruptError    | human | the mirror is damaged; `Mirror.discard` deletes it, so that a fetch can restore it
├── InternalGitError      | human | an unexpected exception; the log contains its traceback
├── StatusBranchError     | human | a commit of the status branch is not from the daemon
├── FolderUnwritableError | human | a file of an output folder cannot be written, for example on a full disk
├── CacheUnusableError    | human | the cache folder cannot be written
├── CacheRefusedError     | human | another user owns the cache folder, or can write to it
└── GitProgramMissingError | human | the program git is not installed
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from reconciler.krm.internal_errors import ExpectedError, InternalFailure

NextStep = Literal["retry", "wait", "human"]


class GitError(ExpectedError):
    """Base class of errors about repositories. `next_step` is the reaction: retry, wait, or a person's action."""

    next_step: ClassVar[NextStep] = "retry"
    advice: ClassVar[str] = ""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def code(self) -> str:
        """The name of the reason, such as `AccessDenied`. It is the name of the class without `Error`."""
        return type(self).__name__.removesuffix("Error")

    @property
    def full_message(self) -> str:
        """The message, followed by the next step: `advice`, or `next_step` if `advice` is empty.

        If `advice` is empty and `next_step` is "human", the text contains only the message.
        """
        advice = self.advice or ("" if self.next_step == "human" else self.next_step)
        return f"{self.message} (next step: {advice})" if advice else self.message


class FolderUnwritableError(GitError):
    """A file of an output folder cannot be written, for example on a full disk."""

    next_step = "human"


class StatusBranchError(GitError):
    """The status branch has content that the daemon did not write. Therefore, the daemon must not change the branch."""

    next_step = "human"
    advice = "delete the branch, so that the next pass writes it again, or change the setting `status.branch`"


class InterruptedGitError(GitError):
    """The daemon ended the Git process. This error does not mean that the repository or the mirror has a problem."""


class InternalGitError(GitError):
    """An unexpected exception ended the work on one repository."""

    next_step = "human"

    def __init__(self, failure: InternalFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class UnreachableError(GitError):
    """The host did not answer, or closed the connection."""


class GitTimeoutError(GitError):
    """A Git call took longer than `timeout_seconds`, and its process was ended."""


class GitFailedError(GitError):
    """Git failed, and no other error class describes the reason."""


class MirrorBusyError(GitError):
    """Another process holds the mirror's lock."""

    next_step = "wait"
    advice = "wait until this process ends, or end it"


class RemoteBusyError(GitError):
    """An earlier fetch from or push to this remote has not ended. Other work on the remote must wait."""

    next_step = "wait"


class RateLimitedError(GitError):
    """The host limits the number of calls."""

    next_step = "wait"


class AccessDeniedError(GitError):
    """Credentials are missing, wrong, or do not allow the operation."""

    next_step = "human"
    advice = "check the credentials and their permissions"


class ReadOnlyRemoteError(GitError):
    """The settings contain credentials for reading the remote, but none for pushes to it. Nothing was pushed."""

    next_step = "human"
    advice = "add `write` to this entry of the settings, or use another repository as the target"


class HostUntrustedError(GitError):
    """A host key, a certificate, or the owner of a local repository is not trusted."""

    next_step = "human"
    advice = "check the host's key or certificate, or the owner of the repository"


class RepositoryMissingError(GitError):
    """There is no repository at this address."""

    next_step = "human"
    advice = "check that the address is correct and that a repository or folder exists there"


class UrlRefusedError(GitError):
    """The address is malformed, or not in the allow-list."""

    next_step = "human"


class CredentialInUrlError(UrlRefusedError):
    """The address contains credentials. The error message does not contain them."""


class ObjectMissingError(GitError):
    """A requested Git object or ref does not exist."""

    next_step = "human"


class OfflineError(GitError):
    """A fetch is necessary, but the option `--offline` forbids every contact with a remote."""

    next_step = "human"
    advice = "leave out --offline"


class TreeMalformedError(GitError):
    """A tree has entries that a file system cannot store, for example two entries with the same name."""

    next_step = "human"


class TooLargeError(GitError):
    """The size of an object, or the number of files in a tree, exceeds its limit."""

    next_step = "human"


class PathRefusedError(GitError):
    """A path must not be written, or is not allowed in a tree."""

    next_step = "human"


class SymbolicRefError(GitError):
    """A ref of the remote is symbolic. A push to a symbolic ref moves or deletes the branch that the ref points to."""

    next_step = "human"


class SigningFailedError(GitError):
    """A commit or tag could not be signed, or its signature is not valid. Nothing was pushed."""

    next_step = "human"
    advice = "check the settings group `signing`, the key, and the program that signs"


class UnverifiedCommitError(GitError):
    """A commit has no valid signature, and no verified commit is known. The message contains the next step."""

    next_step = "human"


class FolderChangedError(GitError):
    """Another program changed the folder during the operation. Nothing was written."""


class MirrorCorruptError(GitError):
    """The mirror in the cache is damaged. `Mirror.discard` deletes the mirror. A new fetch restores its content."""

    next_step = "human"


class CacheUnusableError(GitError):
    """The cache folder cannot be written, because of permissions or a full disk."""

    next_step = "human"
    advice = "free disk space, or choose another cache folder"


class CacheRefusedError(CacheUnusableError):
    """Another user owns the cache folder, or can write to it. The message contains the next step."""

    advice = ""


class GitProgramMissingError(GitError):
    """The program git is not on the PATH."""

    next_step = "human"


# The first matching pattern determines the error class. Therefore, specific patterns come before general patterns. For
# example, the output for a refused SSH key also contains "could not read from remote repository". The output for a
# missing repository can contain "403".
_ERROR_PATTERNS: tuple[tuple[type[GitError], tuple[str, ...]], ...] = (
    (CacheUnusableError, (r"(?m)^(?!remote:).*(no space left on device|disk quota exceeded|read-only file system)",)),
    (HostUntrustedError, ("host key verification failed", "no .* host key is known", "certificate",
                          "dubious ownership", "remote host identification has changed")),
    (RateLimitedError, ("rate limit", "too many requests", r"\berror: 429")),
    (AccessDeniedError, ("authentication failed", "permission denied", "could not read (username|password)",
                         "access denied", r"\berror: 40[13]", "invalid username", "not authorized", "unauthorized",
                         "permission to .* denied", "terminal prompts disabled")),
    (RepositoryMissingError, ("repository .*not found", "does not appear to be a git repository", "does not exist",
                              "not a git repository", r"\berror: 404", "mismatched algorithms",
                              "project you were looking for could not be found")),
    (ObjectMissingError, ("tree not found", "not a valid commit", "not found: ", "not a valid object name",
                          "not our ref")),
    (UrlRefusedError, ("transport '.*' not allowed", "unable to update url base from redirection",
                       r"\berror: 30\d")),
    (MirrorCorruptError, ("bad object", "is corrupt", "loose object", "packfile .* cannot be", "file is too small",
                          "broken packed-refs", "unexpected line in .*packed-refs", "object file .* is empty",
                          "bad config", "packfile .* (is|does|claims|has)", "index file .* (is|has)", "non-monotonic",
                          "unable to read (tree|sha1|object|[0-9a-f]{40})", "failed to traverse parents", "inflate:",
                          "revision walk setup failed", "could not parse object", "missing (tree|blob|commit|object)",
                          "invalid sha1 pointer", "unable to (parse|unpack) .* header", "could not (read|parse) commit",
                          "(bad|broken) ref ", "cannot read existing object", "unable to find [0-9a-f]{40}")),
    (UnreachableError, ("could not resolve", "connection (refused|reset|timed out|closed)", "failed to connect",
                        "unreachable", "hung up", "early eof", "operation timed out", "no route to host",
                        "couldn't connect", r"\berror: 50\d", "could not read from remote repository",
                        "transfer closed", "operation too slow", "empty reply")),
)  # fmt: skip


def classify_failure(stderr: str) -> type[GitError]:
    """Return the error class for the stderr of git (LC_ALL=C). Return `GitFailedError` if no pattern matches."""
    for error_class, patterns in _ERROR_PATTERNS:
        if any(re.search(pattern, stderr, re.IGNORECASE) for pattern in patterns):
            return error_class
    return GitFailedError
