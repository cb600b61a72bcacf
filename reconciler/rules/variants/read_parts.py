"""Reading the parts that a PackageVariant and the template of a set share (porch 2.1, 2.2, 2.4)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import cast

from reconciler.krm.durations import duration_seconds
from reconciler.krm.names import (
    annotation_key_fault,
    label_key_fault,
    label_value_fault,
    ref_name_fault,
    workspace_fault,
)
from reconciler.rules.variant import ConflictPolicy, UpdateStrategy
from reconciler.rules.variants.fields import Faults, Fields, shown
from reconciler.rules.variants.model import (
    FloatingTag,
    Function,
    Head,
    Reference,
    Revision,
    Upstream,
    Workspace,
)

LATEST_REVISION = "kpt.dev/latest-revision"
UPSTREAM_FIELDS = ("repo", "package", "revision", "workspaceName", "tag", "tagMode", "tagPolicy")
FUNCTION_FIELDS = ("image", "exec", "configPath", "configMap", "name", "tag", "selectors", "exclude")
UPDATE_STRATEGIES = ("resource-merge", "copy-merge", "fast-forward", "force-delete-replace")
CONFLICT_POLICIES = ("upstream", "local", "block")
_SELECTOR_FIELDS = ("apiVersion", "kind", "name", "namespace", "labels", "annotations")
REWRITE = "rewrite"
_NUMBERED = re.compile(r"v?([1-9][0-9]*)")
_LIKE_A_REVISION = re.compile(r"v?[0-9]+")


def read_upstream_aliases(upstream: Fields) -> Fields:
    """Return the upstream with `ref` read as `tag` (porch 2.4)."""
    if not upstream.has("ref"):
        return upstream
    upstream.faults.warn(f"{upstream.at('ref')} is read as {upstream.at('tag')}")
    if upstream.has("tag"):
        upstream.faults.add(f"{upstream.path} may specify only one of tag and ref")
    return upstream.replaced({"ref": None, "tag": upstream.raw("ref")})


def read_references(upstream: Fields) -> list[Reference]:
    """Return the references that are written: a sound upstream has exactly one, or a revision before a tag."""
    found = (_read_revision(upstream), _read_workspace(upstream), _read_tag(upstream))
    return [reference for reference in found if reference is not None]


def count_references(upstream: Fields) -> int:
    """Return how many of revision, workspaceName and tag are written, sound or not.

    A tag that is rewritten to a revision may stand beside that revision: the two are one (porch 14.1).
    """
    named = [name for name in ("workspaceName", "tag") if upstream.raw(name) not in (None, "")]
    beside = "tag" in named and upstream.has("revision") and upstream.raw("tagMode") == REWRITE
    return upstream.has("revision") + len(named) - beside


def _read_revision(upstream: Fields) -> Reference | None:
    revision, path = upstream.raw("revision"), upstream.at("revision")
    if revision is None:
        return None
    if isinstance(revision, bool) or not isinstance(revision, int | str):
        # YAML reads 1.10 as the number 1.1; only quotes keep what was meant (design 10.21)
        upstream.faults.add(f"{path} must be a string or an integer, not {shown(revision)}: quote it")
        return None
    if str(revision).strip() in ("", "0"):
        upstream.faults.add(f"{path} must not be 0 or empty")
        return None
    return _revision(str(revision), path, upstream.faults)


def _revision(text: str, path: str, faults: Faults) -> Reference | None:
    if text == "-1":
        return Head()
    if numbered := _NUMBERED.fullmatch(text):
        return Revision(f"v{numbered[1]}", int(numbered[1]))
    if fault := ref_name_fault(text):
        faults.add(f"{path} is invalid: {fault}")
        return None
    return Revision(text, -1)


def _read_workspace(upstream: Fields) -> Reference | None:
    name = upstream.text("workspaceName")
    if name and (fault := workspace_fault(name)):
        upstream.faults.add(f"{upstream.at('workspaceName')} is invalid: {fault}")
        return None
    return Workspace(name) if name else None


def _read_tag(upstream: Fields) -> Reference | None:
    name = upstream.text("tag")
    if fault := name and _tag_fault(name):
        upstream.faults.add(f"{upstream.at('tag')} is invalid: {fault}")
        return None
    return FloatingTag(name) if name else None


def _tag_fault(name: str) -> str | None:
    if _LIKE_A_REVISION.fullmatch(name):
        # porch 14.1: it would shadow a revision
        return f'"{name}" names a revision; write it as revision'
    return workspace_fault(name)


def build_upstream(upstream: Fields, repo: str, package: str, reference: Reference) -> Upstream:
    """Return the upstream with the fields that say how its tag is followed (design 10.21)."""
    mode = upstream.choice("tagMode", ("follow", REWRITE))
    tag = upstream.raw("tag")
    if mode == REWRITE and not tag:
        upstream.faults.add(f'{upstream.at("tagMode")} "{REWRITE}" needs {upstream.at("tag")}: the tag to look at')
    return Upstream(repo, package, reference, _read_settle(upstream), str(tag or "") if mode == REWRITE else "")


def _read_settle(upstream: Fields) -> str:
    policy = upstream.fields("tagPolicy")
    policy.refuse_unknown("settle")
    settle = policy.text("settle")
    if settle and duration_seconds(settle) is None:
        upstream.faults.add(f'{policy.at("settle")} must be a duration such as "10m" or "1h30m", not {shown(settle)}')
    return settle


def read_labels(fields: Fields, name: str) -> dict[str, str]:
    """Return labels for a package revision; the key that Porch computes is refused (porch 1.1)."""
    labels = fields.string_map(name)
    fields.faults.add(*(f"{fields.at(name)}: {fault}" for fault in _label_faults(labels)))
    if LATEST_REVISION in labels:
        fields.faults.add(f'{fields.at(name)} must not contain the key "{LATEST_REVISION}"')
    return labels


def _label_faults(labels: Mapping[str, str]) -> Iterator[str]:
    for key, value in labels.items():
        yield from (fault for fault in (label_key_fault(key), label_value_fault(value)) if fault)


def read_annotations(fields: Fields, name: str) -> dict[str, str]:
    """Return annotations for a package revision."""
    annotations = fields.string_map(name)
    faults = (annotation_key_fault(key) for key in annotations)
    fields.faults.add(*(f"{fields.at(name)}: {fault}" for fault in faults if fault))
    return annotations


def read_function(entry: Fields) -> Function:
    """Return one pipeline entry, with the faults of porch 2.2."""
    function = Function(
        image=entry.text("image"),
        exec=entry.text("exec"),
        name=entry.text("name"),
        tag=entry.text("tag"),
        config_path=entry.text("configPath"),
        config_map=entry.string_map("configMap"),
        selectors=_read_selectors(entry, "selectors"),
        exclude=_read_selectors(entry, "exclude"),
    )
    if not function.image and not function.exec:
        entry.faults.add(f"{entry.at('image')} must not be empty")
    if function.image and function.exec:
        entry.faults.add(f"{entry.path} may specify only one of image and exec")
    if "." in function.name:
        entry.faults.add(f"{entry.at('name')} must not contain '.'")
    return function


def read_function_config(entry: Fields, function: Function, *, more_config: bool = False) -> None:
    """Note a function that has its configuration in two places; `more_config`: a configMap by expressions."""
    if function.config_path and (function.config_map or more_config):
        entry.faults.add(f"{entry.path} may specify only one of configPath and configMap")


def _read_selectors(entry: Fields, name: str) -> tuple[dict[str, object], ...]:
    return tuple(_read_selector(selector) for selector in entry.entries(name))


def _read_selector(selector: Fields) -> dict[str, object]:
    selector.refuse_unknown(*_SELECTOR_FIELDS)
    read: dict[str, object] = {}
    for name in _SELECTOR_FIELDS:
        if selector.has(name):
            read[name] = selector.string_map(name) if name in ("labels", "annotations") else selector.text(name)
    return read


def read_merge_choices(fields: Fields) -> tuple[UpdateStrategy | None, ConflictPolicy | None]:
    """Return updateStrategy and conflictPolicy (design 10.21); None where the Kptfile or the settings decide."""
    strategy = fields.choice("updateStrategy", UPDATE_STRATEGIES)
    conflicts = fields.choice("conflictPolicy", CONFLICT_POLICIES)
    return cast("UpdateStrategy | None", strategy), cast("ConflictPolicy | None", conflicts)
