"""What can go wrong between us and a repository, named by what to do next. Messages never hold credentials.

GitError                      next step
├── UnreachableError          retry   the network, or a host that is down
├── TimedOutError             retry   a call took longer than `timeout_seconds`
├── GitFailedError            retry   git said something we have no better name for
├── MirrorBusyError           wait    another process holds the mirror
├── RateLimitedError          wait    the host asks for patience
├── InterruptedGitError       retry   the service was asked to end, and ended git
├── UnderWayError             wait    a fetch or push takes its time, and goes on beside the passes
├── AccessDeniedError         human   credentials are missing, wrong, or not enough
├── HostUntrustedError        human   a host key, a certificate or an owner that nobody vouched for
├── RepositoryMissingError    human   nothing stands at that address
├── UrlRefusedError           human   the address is malformed, or the allow-list does not have it
├── CredentialInUrlError      human   the address contains a user name, password or token
├── ObjectMissingError        human   an object that something names is not there
├── OfflineError              human   what is wanted would have to be fetched, and nothing is
├── TooLargeError             human   an object or tree beyond our limits
├── TreeMalformedError        human   a tree with entries that no file system can hold
├── PathRefusedError          human   a path that must not be written to, or that no tree of ours may hold
├── SymbolicRefError          human   a ref at the host stands for another one, which a push would move
├── FolderChangedError        retry   somebody changed a folder while we were at work on it
├── MirrorCorruptError        human   the mirror is damaged; `Mirror.discard` lets it be fetched anew
├── InternalGitError          human   an unexpected exception; the log has its traceback
├── StatusBranchError         human   the branch for the status is not one that a pass wrote
├── FolderUnwritableError     human   a file of an output folder cannot be written, as on a full disk
├── CacheUnusableError        human   the cache folder cannot be written
├── CacheRefusedError         human   another user owns the cache folder, or may write to it
└── GitProgramMissingError    human   git itself is not installed
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

from reconciler.krm.isolation import ExpectedError, InternalFailure

NextStep = Literal["retry", "wait", "human"]


class GitError(ExpectedError):
    """Something in the world of repositories went wrong; `next_step` says who acts next."""

    next_step: ClassVar[NextStep] = "retry"
    advice: ClassVar[str] = ""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def told(self) -> str:
        """The message with its next step, where it does not say itself what must be otherwise."""
        advice = self.advice or ("" if self.next_step == "human" else self.next_step)
        return f"{self.message} (next step: {advice})" if advice else self.message


class FolderUnwritableError(GitError):
    """A file of an output folder cannot be written, as on a full disk."""

    next_step = "human"


class StatusBranchError(GitError):
    """The branch for the status is not one that a pass wrote; its content stays."""

    next_step = "human"
    advice = "delete the branch, which the next pass writes again, or name another branch in status.branch"


class InterruptedGitError(GitError):
    """Git was ended on request, so that its failure says nothing about the repository or the mirror."""


class InternalGitError(GitError):
    """The work on one repository ended with an unexpected exception."""

    next_step = "human"

    def __init__(self, failure: InternalFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class UnreachableError(GitError):
    """The host did not answer, or hung up."""


class TimedOutError(GitError):
    """A call took longer than `timeout_seconds`; it was ended."""


class GitFailedError(GitError):
    """Git failed for a reason that has no better name here."""


class MirrorBusyError(GitError):
    """Another process holds the mirror's lock."""

    next_step = "wait"


class UnderWayError(GitError):
    """A remote is still being fetched, or written to, and must be left alone meanwhile."""

    next_step = "wait"


class RateLimitedError(GitError):
    """The host limits how often we may call."""

    next_step = "wait"


class AccessDeniedError(GitError):
    """Credentials are missing, wrong, or do not allow this."""

    next_step = "human"
    advice = "check the credentials, and what they allow"


class HostUntrustedError(GitError):
    """A host key, certificate or owner of a local repository that is not trusted."""

    next_step = "human"
    advice = "check the host's key or certificate, or who owns the repository"


class RepositoryMissingError(GitError):
    """There is no repository at this address."""

    next_step = "human"
    advice = "check the address, and what it holds"


class UrlRefusedError(GitError):
    """The address is malformed, or not on the allow-list."""

    next_step = "human"


class CredentialInUrlError(UrlRefusedError):
    """The address contains credentials; the message does not."""


class ObjectMissingError(GitError):
    """The mirror does not hold this object."""

    next_step = "human"


class OfflineError(GitError):
    """Something would have to be fetched, and the command was told to fetch nothing."""

    next_step = "human"
    advice = "leave out --offline"


class TreeMalformedError(GitError):
    """A tree has entries that contradict each other, or that no file system can hold."""

    next_step = "human"


class TooLargeError(GitError):
    """An object, or a tree's number of files, is beyond the limit."""

    next_step = "human"


class PathRefusedError(GitError):
    """A path must not be written to, or no tree of ours may hold it."""

    next_step = "human"


class SymbolicRefError(GitError):
    """A ref of the remote is a symbolic ref: a push to it moves, or deletes, the branch that it points to."""

    next_step = "human"


class FolderChangedError(GitError):
    """Somebody changed a folder while we were at work on it; nothing was written."""


class MirrorCorruptError(GitError):
    """The mirror in the cache is damaged; `Mirror.discard` lets it be fetched anew, since the remote has it all."""

    next_step = "human"


class CacheUnusableError(GitError):
    """The cache folder cannot be written: permissions, or a full disk."""

    next_step = "human"
    advice = "make room, or choose another cache folder"


class CacheRefusedError(CacheUnusableError):
    """Another user owns the cache folder, or may write to it; the message gives the next step."""

    advice = ""


class GitProgramMissingError(GitError):
    """The program git is not on the PATH."""

    next_step = "human"


# the first pattern found decides, so the specific ones stand above the vague ones: a refused ssh key
# also reads "could not read from remote repository", a missing repository may read "403"
_SIGNS: tuple[tuple[type[GitError], tuple[str, ...]], ...] = (
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


def name_failure(words: str) -> type[GitError]:
    """Return the kind of error that git's own words (LC_ALL=C) speak of; `GitFailedError` when they tell nothing."""
    for kind, patterns in _SIGNS:
        if any(re.search(pattern, words, re.IGNORECASE) for pattern in patterns):
            return kind
    return GitFailedError
