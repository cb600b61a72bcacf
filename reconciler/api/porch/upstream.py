"""The upstream of a package: a package in a Repository, and the reference that determines its revision."""

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field

from reconciler.api.base import ApiModel, Deprecation, FieldIssue, issue
from reconciler.api.field_types import Duration, NonEmptyText, PackagePath, check_text
from reconciler.api.package_sources import ChartName, ChartVersion, Digest, SourceKind
from reconciler.api.porch.messages import format_compact_json
from reconciler.krm.names import validate_ref_name, validate_workspace_name
from reconciler.krm.times import parse_duration_seconds
from reconciler.lazy_dataclasses import dataclass

BRANCH_HEAD = -1
"""The value of `revision` that means the head of the branch."""
_NUMBERED_REVISION = re.compile(r"v?([1-9][0-9]*)")
_REVISION_LIKE = re.compile(r"v?[0-9]+")


def _normalize_revision(value: object) -> object:
    """Normalize a revision: -1 is the branch head, a number N becomes `vN`, and other tag suffixes stay unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        # Reject numbers that are not integers, because YAML reads 1.10 without quotes as the number 1.1.
        raise issue(
            f"{{path}} must be a string or an integer, but is {format_compact_json(value)}; put the value in quotes"
        )
    text = str(value)
    if text.strip() in ("", "0"):
        raise issue("{path} must not be 0 or empty")
    if text == str(BRANCH_HEAD):
        return BRANCH_HEAD
    if numbered := _NUMBERED_REVISION.fullmatch(text):
        return f"v{numbered[1]}"
    if reason := validate_ref_name(text):
        raise issue(f"{{path}} is invalid: {reason}")
    return text


def is_revision_name(name: str) -> bool:
    """Return whether a name has the syntax of a revision, such as "v3". Such a name must not be a tag of a package."""
    return _REVISION_LIKE.fullmatch(name) is not None


Revision = Annotated[str | int, BeforeValidator(_normalize_revision)]
WorkspaceName = Annotated[str, check_text(validate_workspace_name, "{path} is invalid")]
TagName = Annotated[str, check_text(validate_workspace_name, "{path} is invalid")]


@dataclass(frozen=True)
class RevisionReference:
    """A revision, which is the suffix of a Git tag, e.g. "v3". `number` is N for "vN", and -1 for any other suffix."""

    suffix: str
    number: int


@dataclass(frozen=True)
class BranchHeadReference:
    """The head of the upstream Repository's branch: revision -1."""


@dataclass(frozen=True)
class WorkspaceReference:
    """The name of a workspace. It refers to the published revision of this workspace.

    If the name is equal to the name of the Repository's branch, it refers to the head of this branch.
    """

    name: str


@dataclass(frozen=True)
class TagReference:
    """A name that can move: a channel, a tag such as `stable`, or `latest`."""

    name: str


@dataclass(frozen=True)
class VersionReference:
    """An exact version or a version range, in the syntax of Helm."""

    range: str


@dataclass(frozen=True)
class DigestReference:
    """The digest of an OCI artifact, without a tag or version."""

    digest: str


UpstreamReference = (
    RevisionReference | BranchHeadReference | WorkspaceReference | TagReference | VersionReference | DigestReference
)


class TagPolicy(ApiModel):
    """Rules for moved tags."""

    settle: Duration = Field("", description="Minimum time without a change of the tag before its new commit is used.")
    range: str = Field(
        "",
        description=(
            "Version range to follow with tagMode rewrite. By default, the range in the field version is followed "
            "until a config proposal replaces it with an exact version."
        ),
        examples=["~5.27"],
    )


class UpstreamSpec(ApiModel):
    """The upstream package and its revision. Use one of revision, tag, version and workspaceName.

    Which fields are allowed depends on the type of the Repository: revision and workspaceName require a Git repository,
    and chart requires a chart repository.
    """

    deprecated_names: ClassVar = {"ref": Deprecation("tag", "Use tag.")}
    blank_fields: ClassVar = ("tagMode",)

    repo: NonEmptyText = Field(description="Name of the Repository that contains the package.")
    package: PackagePath = Field("", description="Path of the package in that Repository. Charts use the field chart.")
    revision: Revision | None = Field(
        None,
        description="Revision of the package, for example v1 or 1. -1 is the head of the branch.",
        json_schema_extra={"not": {"enum": [0, ""]}},
        examples=["v1", -1],
    )
    workspace_name: WorkspaceName = Field(
        "", description="Name of a Porch workspace. The revision that was published from this workspace is used."
    )
    tag: TagName = Field(
        "", description="Name of a channel, or of a tag that can move, such as stable.", examples=["stable"]
    )
    tag_mode: Literal["follow", "rewrite"] = Field(
        "follow",
        description=(
            "follow: the revision that the tag or version range selects is used. rewrite: the reconciler proposes a "
            "change of the config that sets this revision: in the field revision for a tag in Git, in the field digest "
            "for a tag of an OCI artifact, and in the field version for a version range."
        ),
    )
    tag_policy: TagPolicy = Field(TagPolicy(), description="Rules for a tag that has moved to another commit.")
    chart: ChartName = Field("", description="Name of the chart in a Repository of type helm.")
    version: ChartVersion = Field(
        "",
        description=(
            "Version of a chart or of an OCI artifact, or a version range such as ~5.27. The highest matching version "
            "is used."
        ),
        examples=["5.27.0", ">=5.20.0 <6.0.0"],
    )
    digest: Digest = Field(
        "",
        description=(
            "Required digest: of the manifest for OCI, and of the archive for other chart repositories. For OCI, the "
            "digest can replace the version or tag."
        ),
    )
    kind: SourceKind | None = Field(
        None, description="How the files are converted to a package. The default depends on the names of the files."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if there is not exactly one reference, and for each field that `tagMode` does not allow."""
        count = _count_references(data)
        if "package" not in data and not data.get("chart"):
            yield FieldIssue("missing required field {path}", ("package",), rule="missing")
        if data.get("package") and data.get("chart"):
            yield FieldIssue("{path} must specify only one of package and chart")
        if count == 0 and data.get("chart"):
            yield FieldIssue("{path} must be set, because the upstream is a chart", ("version",))
        elif count == 0 and not data.get("digest"):
            yield FieldIssue("{path} must specify one of revision, workspaceName or tag", rule="no_reference")
        if count > 1:
            names = "workspaceName, tag and version" if data.get("version") else "workspaceName and tag"
            yield FieldIssue(f"{{path}} must specify only one of revision, {names}")
        yield from _find_rewrite_issues(data)

    @property
    def reference(self) -> UpstreamReference:
        """The part of the spec that determines the revision, e.g. a revision number, a version or a tag."""
        if self.revision == BRANCH_HEAD:
            return BranchHeadReference()
        if self.revision is not None:
            suffix = str(self.revision)
            numbered = _NUMBERED_REVISION.fullmatch(suffix)
            return RevisionReference(suffix, int(numbered[1]) if numbered else -1)
        if self.version:
            return VersionReference(self.version)
        if self.digest and (self.is_rewritten or not self.tag):
            return DigestReference(self.digest)
        return WorkspaceReference(self.workspace_name) if self.workspace_name else TagReference(self.tag)

    @property
    def package_name(self) -> str:
        """The chart name, or the path of the package in the Repository."""
        return self.chart or self.package

    @property
    def has_resources(self) -> bool:
        """Whether the files are resources of the package, and not only values files."""
        return True

    @property
    def is_rewritten(self) -> bool:
        """Whether new revisions are proposed as config changes (`tagMode: rewrite`)."""
        return self.tag_mode == "rewrite"

    @property
    def rewritten_tag(self) -> str:
        """The tag of an upstream with `tagMode: rewrite`. "" if there is none.

        If the tag moves, the reconciler proposes the new revision as a config change.
        """
        return self.tag if self.is_rewritten else ""

    @property
    def rewritten_range(self) -> str:
        """The version range of an upstream with `tagMode: rewrite`. "" if there is none.

        The reconciler proposes new versions in this range as config changes.
        """
        return (self.tag_policy.range or self.version) if self.is_rewritten else ""

    @property
    def settle_seconds(self) -> int:
        """The `settle` duration in seconds. 0 for `tagMode: rewrite`, because a person merges each new revision."""
        return 0 if self.is_rewritten else parse_duration_seconds(self.tag_policy.settle) or 0

    @property
    def with_followed_reference(self) -> Self:
        """A copy of the upstream that follows its tag or version range, without a fixed revision."""
        followed = {"revision": None, "digest": "", "version": self.rewritten_range, "tag_mode": "follow"}
        return self.model_copy(update=followed) if self.is_rewritten else self

    @property
    def is_awaiting_revision(self) -> bool:
        """Whether the revision of a tag with `tagMode: rewrite` is not in the config yet."""
        return bool(self.rewritten_tag) and self.revision is None and not self.digest

    def as_data(self) -> dict[str, Any]:
        """Return the upstream in the notation of the API. The default `tagMode` is omitted."""
        data = super().as_data()
        return data if self.is_rewritten else {name: value for name, value in data.items() if name != "tagMode"}


def _find_rewrite_issues(upstream: Mapping[str, Any]) -> Iterator[FieldIssue]:
    """Yield an issue for each missing field that `tagMode` requires, and for each field that it does not allow."""
    policy = upstream.get("tagPolicy")
    has_range = isinstance(policy, Mapping) and bool(policy.get("range"))
    if upstream.get("tagMode") != "rewrite":
        if has_range:
            yield FieldIssue("{path}.range requires {parent}.tagMode rewrite", ("tagPolicy",))
        return
    if not upstream.get("tag") and not upstream.get("version"):
        yield FieldIssue('{path} "rewrite" requires {parent}.tag or {parent}.version', ("tagMode",))
    if has_range and not upstream.get("version"):
        yield FieldIssue("{path}.range requires {parent}.version", ("tagPolicy",))
    if upstream.get("version") and upstream.get("digest"):
        yield FieldIssue('{path} must be removed, because tagMode "rewrite" changes {parent}.version', ("digest",))


def _count_references(upstream: Mapping[str, Any]) -> int:
    """Return how many of revision, workspaceName, tag and version have a value.

    With `tagMode: rewrite`, a tag and a revision count as one reference, because the tag defines the next revision.
    """
    names = [name for name in ("workspaceName", "tag", "version") if upstream.get(name) not in (None, "")]
    is_pair = "tag" in names and "revision" in upstream and upstream.get("tagMode") == "rewrite"
    return ("revision" in upstream) + len(names) - is_pair


def set_kustomize_kind(upstream: Any) -> Any:
    """Return an upstream with the kind `kustomize`. An upstream with a kind, or an invalid upstream, is not changed."""
    # Set the kind, because it cannot be detected from the files of the package: the overlay can be in a subfolder.
    if not isinstance(upstream, Mapping) or upstream.get("kind"):
        return upstream
    return {**upstream, "kind": "kustomize"}
