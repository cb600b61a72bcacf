"""Reading what PluginPresets and Plugins say alike: the definition, its options, the release (greenhouse 2.5, 2.7)."""

from __future__ import annotations

import re

from reconciler.krm.yaml import Path
from reconciler.rules.fields import Fields, shown
from reconciler.rules.presets.codes import (
    DEFINITION_REF_MISSING,
    RELEASE_NAME_INVALID,
    WAIT_FOR_DUPLICATE,
    WAIT_FOR_INVALID,
)
from reconciler.rules.presets.model import (
    DEFINITION,
    DEFINITION_KINDS,
    DELETION_POLICIES,
    DefinitionRef,
    PluginSpec,
    WaitFor,
)
from reconciler.rules.presets.read_entries import Told, read_entries

REF, SHORT_REF = "pluginDefinitionRef", "pluginDefinitionName"
SPEC_FIELDS = (
    REF, SHORT_REF, "displayName", "optionValues", "releaseNamespace", "releaseName", "deletionPolicy",
    "ignoreDifferences",
)  # fmt: skip
_COPIED = ("deletionPolicy", "ignoreDifferences")
_IGNORED_FIELDS = ("group", "version", "kind", "name", "paths")
RELEASE_NAME_LENGTH = 53
_RELEASE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def read_plugin_spec(fields: Fields, wait_for: tuple[WaitFor, ...], told: Told, *, strict: bool = True) -> PluginSpec:
    """Return what the fields of a plugin say; `strict` refuses what is unknown below them."""
    release = fields.text("releaseName")
    if release and (fault := release_name_fault(release)):
        fields.fault("releaseName", f"must be one that Helm takes: {fault}", RELEASE_NAME_INVALID)
    if fields.has("deletionPolicy"):
        fields.choice("deletionPolicy", DELETION_POLICIES)
    _check_ignored(fields, strict=strict)
    return PluginSpec(
        read_definition_ref(fields, strict=strict),
        read_entries(fields, "optionValues", told, strict=strict),
        fields.text("displayName"),
        release,
        fields.text("releaseNamespace"),
        wait_for,
        {name: fields.data[name] for name in _COPIED if fields.has(name)},
    )


def release_name_fault(name: str) -> str:
    """Return why a release cannot be called so, or ""."""
    if len(name) > RELEASE_NAME_LENGTH:
        return f"at most {RELEASE_NAME_LENGTH} characters, not the {len(name)} of {shown(name)}"
    if not _RELEASE_NAME.fullmatch(name):
        return f'lower-case letters, digits and "-", in parts joined by single ".", not {shown(name)}'
    return ""


def read_definition_ref(fields: Fields, *, strict: bool) -> DefinitionRef:
    """Return the definition that is named, in either spelling (greenhouse 2.1)."""
    if fields.has(SHORT_REF) and not fields.has(REF):
        return DefinitionRef(DEFINITION, fields.text(SHORT_REF))
    ref = fields.mapping(REF, ("name", "kind") if strict else None)
    kind, name = ref.choice("kind", DEFINITION_KINDS, DEFINITION), ref.text("name")
    if not name:
        ref.fault("name", "must name a plugin definition", DEFINITION_REF_MISSING)
    if fields.has(SHORT_REF) and fields.data[SHORT_REF] != name:
        fields.fault(SHORT_REF, f"must be left out beside {REF}, or name the same, not {shown(fields.data[SHORT_REF])}")
    return DefinitionRef(kind, name)


def read_wait_for(fields: Fields, *, strict: bool = True) -> tuple[WaitFor, ...]:
    """Return what Plugins wait for: each entry names one, and no two the same (greenhouse 2.5)."""
    found: dict[WaitFor, Path] = {}
    for one in fields.mappings("waitFor", ("pluginRef",) if strict else None):
        ref = one.mapping("pluginRef", ("name", "pluginPreset") if strict else None)
        entry = WaitFor(ref.text("name"), ref.text("pluginPreset"))
        if bool(entry.name) == bool(entry.preset):
            both = "not both" if entry.name else "it has neither"
            one.fault("pluginRef", f"must have one of name and pluginPreset; {both}", WAIT_FOR_INVALID)
        elif entry in found:
            one.fault("pluginRef", f"must not name {shown(entry.name or entry.preset)} again", WAIT_FOR_DUPLICATE)
        found.setdefault(entry, one.path)
    return tuple(found)


def check_object(fields: Fields, api_version: str, wanted: str) -> None:
    """Note an apiVersion that is not the one that is read, and a spec that is missing."""
    if api_version != wanted:
        fields.fault("apiVersion", f"must be {wanted}, not {shown(api_version)}")
    if not fields.has("spec"):
        fields.fault("spec", "must be a mapping")


def _check_ignored(fields: Fields, *, strict: bool) -> None:
    for one in fields.mappings("ignoreDifferences", _IGNORED_FIELDS if strict else None):
        for name in _IGNORED_FIELDS[:-1]:
            one.text(name)
        if not one.texts("paths"):
            one.fault("paths", "must be a list of paths that is not empty")
