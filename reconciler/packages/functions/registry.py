"""The registry: which function an image name and version stand for (kpt.md 13)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import re2

from reconciler.packages.functions.apply_replacements import apply_replacements
from reconciler.packages.functions.apply_setters import apply_setters
from reconciler.packages.functions.create_setters import create_setters
from reconciler.packages.functions.delete_annotations import delete_annotations
from reconciler.packages.functions.enable_gcp_services import enable_gcp_services
from reconciler.packages.functions.ensure_name_substring import ensure_name_substring
from reconciler.packages.functions.function import Function, Version
from reconciler.packages.functions.gen_pkg_context import gen_pkg_context
from reconciler.packages.functions.kubeconform import installed, kubeconform, kubeval
from reconciler.packages.functions.list_setters import list_setters
from reconciler.packages.functions.remove_local_config_resources import remove_local_config_resources
from reconciler.packages.functions.search_replace import search_replace
from reconciler.packages.functions.set_annotations import set_annotations
from reconciler.packages.functions.set_enforcement_action import set_enforcement_action
from reconciler.packages.functions.set_image import set_image
from reconciler.packages.functions.set_labels import set_labels
from reconciler.packages.functions.set_name_prefix import set_name_prefix
from reconciler.packages.functions.set_namespace import set_namespace
from reconciler.packages.functions.set_project_id import set_project_id
from reconciler.packages.functions.starlark import run_starlark
from reconciler.packages.functions.upsert_resource import upsert_resource
from reconciler.packages.kptfile import FunctionSpec

_NEWEST = 1_000_000
_VERSION = re2.compile(r"[=^~]?\s*v?(\d+)(?:\.(\d+|[x*]))?(?:\.(\d+|[x*]))?")
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

    releases: Mapping[str, tuple[Release, ...]]

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


def _split(image: str) -> tuple[str, str, str]:
    """Return (base name, tag, digest) of an image reference."""
    reference, _, digest = image.partition("@")
    name, _, tag = reference.rpartition("/")[2].partition(":")
    return name, tag, digest


def _of_version(releases: tuple[Release, ...], text: str) -> Found | None:
    match = _VERSION.fullmatch(text.strip())
    if not match:
        return None
    major, minor, patch = (int(part) if part and part.isdecimal() else _NEWEST for part in match.groups())
    version = (major, minor, patch)
    matching = [release for release in releases if release.since <= version and _floor(version) < release.until]
    return Found(matching[-1].function, version, identity=matching[-1].identity()) if matching else None


def _floor(version: Version) -> Version:
    major, minor, patch = (0 if part == _NEWEST else part for part in version)
    return (major, minor, patch)


def _all(function: Function, until: Version) -> tuple[Release, ...]:
    # these functions look at their version themselves
    return (Release(function, (0, 0, 0), until),)


BUILTIN = Registry(
    {
        "apply-replacements": _all(apply_replacements, (0, 2, 0)),
        "apply-setters": _all(apply_setters, (0, 3, 0)),
        "create-setters": _all(create_setters, (0, 2, 0)),
        "delete-annotations": _all(delete_annotations, (0, 2, 0)),
        "enable-gcp-services": _all(enable_gcp_services, (0, 2, 0)),
        "ensure-name-substring": _all(ensure_name_substring, (0, 3, 0)),
        "gen-pkg-context": _all(gen_pkg_context, (1, 0, 0)),
        "kubeconform": (Release(kubeconform, (0, 0, 0), (0, 2, 0), installed),),
        "kubeval": (Release(kubeval, (0, 0, 0), (0, 4, 0), installed),),
        "list-setters": _all(list_setters, (0, 2, 0)),
        "remove-local-config-resources": _all(remove_local_config_resources, (0, 2, 0)),
        "search-replace": _all(search_replace, (0, 3, 0)),
        "set-annotations": _all(set_annotations, (0, 2, 0)),
        "set-enforcement-action": _all(set_enforcement_action, (0, 2, 0)),
        "set-image": _all(set_image, (0, 2, 0)),
        "set-labels": _all(set_labels, (0, 3, 0)),
        "set-name-prefix": _all(set_name_prefix, (0, 2, 0)),
        "set-namespace": _all(set_namespace, (0, 5, 0)),
        "set-project-id": _all(set_project_id, (0, 3, 0)),
        "starlark": _all(run_starlark, (0, 6, 0)),
        "upsert-resource": (Release(upsert_resource, (0, 2, 0), (0, 3, 0)),),
    }
)
