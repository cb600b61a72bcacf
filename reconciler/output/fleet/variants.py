"""Variants of changes: the digest of the effect of a draft on its cluster, and the content that drafts share."""

from __future__ import annotations

from collections.abc import Container
from functools import cached_property
from sys import intern
from typing import Any
from weakref import WeakValueDictionary

from reconciler.catalog.files import FileTree
from reconciler.krm.json_text import compute_digest, encode_canonical_json
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.changes.objects import ObjectChange, read_file_objects
from reconciler.output.changes.package_changes import (
    KptfileChange,
    PackageChanges,
    compare_packages,
    select_differing_files,
)
from reconciler.output.entries import ConflictEntry
from reconciler.output.fleet.model import VariantContent
from reconciler.output.fleet.risk import RiskClass, assess_risk
from reconciler.output.fleet.target_names import TargetNames
from reconciler.output.plan.overview import build_comparison_key, format_function_prefix
from reconciler.output.review.open_drafts import DraftPackageDetails
from reconciler.output.status.package_sections import format_task, read_inputs, read_text


@dataclass(frozen=True)
class DraftEffect:
    """The effect of the draft of one package on its cluster.

    Attributes:
        change_key: The full key of the change.
        names: The names that differ between targets. Drafts are equal if only these names differ.
        conflicts: The conflicts of the draft. Secrets are masked.
        blocking_reasons: Phrases for the conflicts and unmet gates of the draft.
    """

    change_key: str
    names: TargetNames
    details: DraftPackageDetails
    conflicts: tuple[ConflictEntry, ...] = ()
    blocking_reasons: tuple[str, ...] = ()

    def compute_source_digest(self) -> str:
        """Return a digest of all data that determines the risk and the variant, without parsing changed files."""
        before, after = self._masked_files
        return compute_digest([
            self.change_key, before.id, after.id, self._unmasked_owner, self._masked_conflicts, self._masked_reasons,
            self._masked_templates, self._resource_count,
        ])  # fmt: skip

    def compute_variant_digest(self, risk_class: RiskClass) -> str:
        """Return a digest that is equal for drafts with equal effects on their clusters.

        The names of targets, and changes that have no effect on a cluster, have no influence on the digest.
        """
        effects = compare_packages(*self._masked_files).select_effects()
        comparison_key = build_comparison_key(effects.comparison_key, self.names.owner)
        return compute_digest([
            self.change_key, comparison_key, self._masked_conflicts, self._masked_reasons, self._masked_templates,
            risk_class,
        ])  # fmt: skip

    def build_content(self) -> VariantContent:
        """Return the content of the variant, with the names of this draft."""
        details = self.details
        status, changes = details.package.status, details.changes
        return VariantContent(
            action="remove" if details.package.is_removed else format_task(status) or "local changes",
            changes=changes,
            risk=assess_risk(changes, self._resource_count, self.blocking_reasons),
            conflicts=self.conflicts,
            causes=details.causes,
            config=read_text(read_inputs(status), "config"),
            is_removal=details.package.is_removed,
            template_effects=details.templates,
        )

    @property
    def _unmasked_owner(self) -> str:
        """The name of the owner if the names of functions in the masked files still contain this name. Otherwise, "".

        For example, the owner name `1` is not masked. The digest of the variant depends on the owner in this case.
        """
        prefix = format_function_prefix(self.names.owner).encode()
        files = (file for tree in self._masked_files for file in tree.values())
        return self.names.owner if any(prefix in file.data for file in files) else ""

    @cached_property
    def _resource_count(self) -> int:
        return count_resources(self.details.before)

    @cached_property
    def _masked_files(self) -> tuple[FileTree, FileTree]:
        """The changed files before and after the change, with masked names."""
        before, after = select_differing_files(self.details.before, self.details.after)
        return self.names.mask_file_names(before), self.names.mask_file_names(after)

    @property
    def _masked_conflicts(self) -> list[str]:
        return [
            self.names.mask_names(encode_canonical_json(conflict.to_data()).decode()) for conflict in self.conflicts
        ]

    @property
    def _masked_reasons(self) -> list[str]:
        return [self.names.mask_names(reason) for reason in self.blocking_reasons]

    @property
    def _masked_templates(self) -> list[str]:
        return [self.names.mask_names(effect) for effect in self.details.templates]


class VariantPool:
    """Caches the digests of variants, and shares equal parts between the contents of drafts.

    A fleet has many drafts and few variants. The content of a draft contains the names of its target. Therefore, drafts
    of the same variant share only the objects without these names.

    Args:
        shares_contents: Whether all drafts of a variant use the whole content of the first draft, including the names
            of its target. This saves most of the time, because the files of the other drafts are not parsed.
    """

    def __init__(self, *, shares_contents: bool = False) -> None:
        self._shares_contents = shares_contents
        self._digests: dict[str, str] = {}
        self._contents: dict[str, VariantContent] = {}
        self._parts: WeakValueDictionary[object, Any] = WeakValueDictionary()

    def find_variant(self, effect: DraftEffect) -> tuple[str, VariantContent]:
        """Return the digest of the variant that a draft belongs to, and the content of the draft."""
        source = effect.compute_source_digest()
        content = self._contents.get(source) or self._share(effect.build_content())
        if self._shares_contents:
            self._contents[source] = content
        if source not in self._digests:
            self._digests[source] = effect.compute_variant_digest(content.risk.risk_class)
        return self._digests[source], content

    def retain(self, digests: Container[str]) -> None:
        """Remove all variants from the pool, except for the variants with these digests."""
        self._digests = {source: digest for source, digest in self._digests.items() if digest in digests}

    def _share(self, content: VariantContent) -> VariantContent:
        """Return a copy of the content. Equal parts of several contents become one shared Python object."""
        changes = content.changes
        return replace(
            content,
            action=intern(content.action),
            changes=PackageChanges(
                tuple(map(self._share_object, changes.objects)),
                tuple(map(self._share_kptfile, changes.kptfiles)),
                changes.files,
            ),
            causes=tuple(map(intern, content.causes)),
            template_effects=tuple(map(intern, content.template_effects)),
            config=intern(content.config),
        )

    def _share_object(self, change: ObjectChange) -> ObjectChange:
        # All drafts that add or remove an object share one entry, even if the digest of the object differs between
        # targets. The entry contains no digest, because the digest is computed from values of Secrets.
        key = (change.key, change.change_type, change.files, change.digest if change.fields else "")
        shared: ObjectChange | None = self._parts.get(key)
        if shared is None:
            shared = self._parts[key] = replace(change, digest="")
        return shared

    def _share_kptfile(self, kptfile: KptfileChange) -> KptfileChange:
        if kptfile.change_type != "changed":
            # Omit the functions and gates of an added or removed Kptfile, because the names of functions contain the
            # name of the target.
            kptfile = KptfileChange(kptfile.path, kptfile.change_type, kptfile.upstream)
        key = compute_digest([repr(kptfile)])
        shared: KptfileChange = self._parts.setdefault(key, kptfile)
        return shared


def count_resources(files: FileTree) -> int:
    """Return the number of objects in the files of a package, without objects that only tools use."""
    return sum(
        not file_object.is_local_config
        for path, file in files.items()
        for file_object in read_file_objects(path, file.data).objects
    )


def list_noise(changes: PackageChanges) -> tuple[str, ...]:
    """Return the paths of files whose changes have no effect on a cluster, for example changes of the format.

    Kptfiles without a change of functions or gates have no effect on a cluster. Objects of local config have no effect
    either.
    """
    kptfiles = [kptfile.path for kptfile in changes.kptfiles if not kptfile.has_effect]
    reformatted = [file.path for file in changes.files if file.change_type == "reformatted"]
    resources = {path for change in changes.objects if not change.is_local_config for path in change.files}
    tools = [path for change in changes.objects if change.is_local_config for path in sorted(change.files - resources)]
    return tuple(dict.fromkeys((*kptfiles, *reformatted, *tools)))
