"""The registry: which function an image name and version stand for (kpt.md 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import re2

from reconciler.caching import cached
from reconciler.packages.functions.function import Function, Version
from reconciler.packages.functions.limits import DEFAULT_LIMITS, FunctionLimits
from reconciler.packages.kptfile import FunctionSpec

_NEWEST = 1_000_000
_VERSION = re2.compile(r"[=^~]?\s*v?(\d+)(?:\.(\d+|[x*]))?(?:\.(\d+|[x*]))?")
# the images and tags of the packages in flight
_REMEMBERED_TEXTS = 1024
_MOVING_TAGS = ("", "latest", "unstable")


@dataclass(frozen=True)
class Release:
    """An implementation and the versions it stands for: from `since` on, before `until`; `identity` as in Found."""

    function: Function
    since: Version
    until: Version
    identity: Callable[[], str] = str


@dataclass(frozen=True)
class Found:
    """What runs for an entry of a pipeline; `warning` says when its version could only be guessed.

    `identity` is the digest of what runs where that is no part of us; what we bring along changes with our version.
    """

    function: Function
    version: Version
    warning: str = ""
    identity: str = ""


@dataclass(frozen=True)
class Missing:
    """Why nothing can run for an entry of a pipeline; `identity` as in Found, where that may change without us."""

    reason: str
    identity: str = ""


@dataclass(frozen=True)
class Registry:
    """Implementations by the image's base name."""

    load: Callable[[], Mapping[str, tuple[Release, ...]]]
    limits: FunctionLimits = DEFAULT_LIMITS

    @cached_property
    def releases(self) -> Mapping[str, tuple[Release, ...]]:
        """The implementations, loaded when the first one is looked for."""
        return self.load()

    def find(self, spec: FunctionSpec) -> Found | None:
        """Return what runs in place of an image, or None when nothing here can; commands (`exec`) never can.

        Registry and folder do not count. A tag like `v0.4` or `latest` means the newest such release. A tag that we
        do not know, and a digest, means the newest there is, with a warning. The `tag` field of a pipeline's function
        overrules the image's own tag.
        """
        name, tag, digest = _split(spec.image)
        releases = self.releases.get(name)
        if not releases:
            return None
        last = releases[-1]
        newest = Found(last.function, (*last.until[:2], _NEWEST), identity=last.identity())
        wanted = spec.tag or tag
        if digest and not wanted:
            return replace(newest, warning=f"the newest {name} runs, since a digest names no version")
        if wanted in _MOVING_TAGS:
            return newest
        return _of_version(releases, wanted) or replace(
            newest, warning=f'the newest {name} runs, since "{wanted}" is not a version known here'
        )


@cached(_REMEMBERED_TEXTS)
def _split(image: str) -> tuple[str, str, str]:
    """Return (base name, tag, digest) of an image reference."""
    reference, _, digest = image.partition("@")
    name, _, tag = reference.rpartition("/")[2].partition(":")
    return name, tag, digest


def _of_version(releases: tuple[Release, ...], text: str) -> Found | None:
    version = _version(text)
    if version is None:
        return None
    matching = [release for release in releases if release.since <= version and _floor(version) < release.until]
    return Found(matching[-1].function, version, identity=matching[-1].identity()) if matching else None


@cached(_REMEMBERED_TEXTS)
def _version(text: str) -> Version | None:
    match = _VERSION.fullmatch(text.strip())
    if not match:
        return None
    major, minor, patch = (int(part) if part and part.isdecimal() else _NEWEST for part in match.groups())
    return major, minor, patch


def _floor(version: Version) -> Version:
    major, minor, patch = (0 if part == _NEWEST else part for part in version)
    return (major, minor, patch)


def _load_ours() -> Mapping[str, tuple[Release, ...]]:
    # here, not above: most passes render nothing, and the functions are a tenth of what a command loads
    from reconciler.packages.functions.builtin import RELEASES

    return RELEASES


BUILTIN = Registry(_load_ours)
