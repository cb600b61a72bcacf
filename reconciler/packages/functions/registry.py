"""The registry of built-in functions, which selects a function by image name and version.

To add a function, add it to the table in `builtin.py`.
The module also formats and parses the keys of functions in render traces. A render trace records the inputs of a
render.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

import re2

from reconciler.api.kpt import FunctionSpec
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.packages.functions.function import FunctionVersion, KrmFunction
from reconciler.packages.functions.limits import DEFAULT_LIMITS, FunctionLimits

_ANY_NUMBER = 1_000_000
_VERSION = re2.compile(r"[=^~]?\s*v?(\d+)(?:\.(\d+|[x*]))?(?:\.(\d+|[x*]))?")
# Maximum number of cached parse results of images and versions. This number is sufficient for all packages that are
# rendered at the same time.
_MAX_CACHED_TEXTS = 1024
_MOVING_TAGS = ("", "latest", "unstable")


@dataclass(frozen=True)
class FunctionRelease:
    """An implementation of a function for the versions from `since` (inclusive) to `until` (exclusive).

    `identity` returns the digest of an external function. See `FunctionMatch.identity`.
    """

    function: KrmFunction
    since: FunctionVersion
    until: FunctionVersion
    identity: Callable[[], str] = str


@dataclass(frozen=True)
class FunctionMatch:
    """The function for a pipeline entry.

    Attributes:
        version: The version that the pipeline entry requests.
        warning: A message if the version is unknown and the newest version is used. "" otherwise.
        identity: The digest of an external function. "" for most built-in functions, because they change only with the
            version of this program.
    """

    function: KrmFunction
    version: FunctionVersion
    warning: str = ""
    identity: str = ""


@dataclass(frozen=True)
class FunctionUnavailable:
    """The reason why no function can run for a pipeline entry.

    `identity` identifies the settings or programs because of which no function can run. It is "" if only a new version
    of the reconciler can solve the problem. The render trace contains `identity`. If `identity` changes, the package is
    rendered again.
    """

    reason: str
    identity: str = ""


@dataclass(frozen=True)
class FunctionRegistry:
    """The built-in functions, by the base name of their image."""

    load: Callable[[], Mapping[str, tuple[FunctionRelease, ...]]]
    limits: FunctionLimits = DEFAULT_LIMITS

    @cached_property
    def releases(self) -> Mapping[str, tuple[FunctionRelease, ...]]:
        """All implementations of functions. They are loaded at the first access."""
        return self.load()

    def find(self, spec: FunctionSpec) -> FunctionMatch | None:
        """Return the built-in function for the image of a pipeline entry.

        Return None if there is no such function, or if the entry has a command (`exec`) instead of an image.

        The registry and folder of the image have no effect. The field `tag` of the pipeline entry overrides the tag of
        the image. A tag such as `v0.4` or `latest` selects the newest matching release. An unknown tag or a digest
        selects the newest release, with a warning.
        """
        name, tag, digest = split_image(spec.image)
        releases = self.releases.get(name)
        if not releases:
            return None
        requested_tag = spec.tag or tag
        if digest and not requested_tag:
            reason = "a digest does not contain a version"
        elif requested_tag in _MOVING_TAGS:
            reason = ""
        elif match := _find_release(releases, requested_tag):
            return match
        else:
            reason = f'the version "{requested_tag}" is unknown'
        warning = f'the newest version of "{name}" runs, because {reason}' if reason else ""
        newest = releases[-1]
        return FunctionMatch(newest.function, (*newest.until[:2], _ANY_NUMBER), warning, newest.identity())


@cached(_MAX_CACHED_TEXTS)
def split_image(image: str) -> tuple[str, str, str]:
    """Return the base name, the tag and the digest of an image reference. A missing part is ""."""
    reference, _, digest = image.partition("@")
    name, _, tag = reference.rpartition("/")[2].partition(":")
    return name, tag, digest


def _find_release(releases: tuple[FunctionRelease, ...], text: str) -> FunctionMatch | None:
    version = _parse_version(text)
    if version is None:
        return None
    matching = [
        release for release in releases if release.since <= version and _get_lowest_version(version) < release.until
    ]
    return FunctionMatch(matching[-1].function, version, identity=matching[-1].identity()) if matching else None


@cached(_MAX_CACHED_TEXTS)
def _parse_version(text: str) -> FunctionVersion | None:
    match = _VERSION.fullmatch(text.strip())
    if not match:
        return None
    major, minor, patch = (int(part) if part and part.isdecimal() else _ANY_NUMBER for part in match.groups())
    return major, minor, patch


def _get_lowest_version(version: FunctionVersion) -> FunctionVersion:
    major, minor, patch = (0 if part == _ANY_NUMBER else part for part in version)
    return (major, minor, patch)


def _load_builtin_releases() -> Mapping[str, tuple[FunctionRelease, ...]]:
    # Import the functions here and not at the top, because most passes do not render, and this import is slow.
    from reconciler.packages.functions.builtin import RELEASES

    return RELEASES


BUILTIN_FUNCTIONS = FunctionRegistry(_load_builtin_releases)


_FUNCTION = "function"


def is_function_trace_key(key: str) -> bool:
    """Return whether a key of a render trace identifies a function, or a program that renders sources."""
    return key.startswith(f"{_FUNCTION} ")


def format_function_trace_key(spec: FunctionSpec) -> str:
    """Return the key of a function in a render trace. `parse_function_trace_key` is the reverse function."""
    kind, reference = ("exec", spec.exec) if spec.exec else ("image", spec.image)
    parts = (_FUNCTION, kind, reference, *([spec.tag] if spec.tag else []))
    return " ".join(part.replace("%", "%25").replace(" ", "%20") for part in parts)


def format_program_trace_key(program: str) -> str:
    """Return the key that identifies a program in a render trace. The program renders sources, as helm does."""
    return f"{_FUNCTION} program {program}"


def parse_function_trace_key(key: str) -> FunctionSpec:
    """Return the pipeline entry for the key of a function in a render trace.

    If the key is invalid, return an entry without image and command, for which no function exists.
    """
    match [part.replace("%20", " ").replace("%25", "%") for part in key.split(" ")]:
        case [_, "exec", command]:
            return FunctionSpec(exec=command)
        case [_, "image", image, *tag]:
            return FunctionSpec(image=image, tag="".join(tag))
        case _:
            # An invalid key is not an error, because other programs can write to the branch that contains the trace.
            return FunctionSpec()
