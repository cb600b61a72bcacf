"""The kind Repository: a Git repository, chart repository or OCI registry."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, get_args

from pydantic import AfterValidator, Field, StrictBool

from reconciler.api.base import ApiModel, FieldIssue, issue
from reconciler.api.field_types import NonEmptyText
from reconciler.api.manifest import KUBERNETES_VERSION_SCHEMA, Manifest
from reconciler.api.messages import MessageTemplates
from reconciler.api.package_sources import HelmRepository, OciRepository, RepositoryType
from reconciler.api.porch.manifest import PORCH_API_VERSION
from reconciler.krm.field_text import quote_value
from reconciler.redaction import has_credentials, redact_url


def _check_repository_url(url: str) -> str:
    if has_credentials(url):
        advice = (
            "put the credentials into a file, and refer to the file in the setting `git.credentials`. In a path,"
            " write @ as %40"
        )
        text = f'must not contain a user name, password or token. Write "{redact_url(url)}"; {advice}'
        raise issue(f"{{path}} {text}", "CredentialInUrl")
    return url


def _check_directory(directory: str) -> str:
    if ".." in directory.split("/"):
        raise issue(f'{{path}} must not contain "..", but is {quote_value(directory)}')
    return directory


class RepositoryGit(ApiModel):
    """The Git repository."""

    is_open: ClassVar = True

    repo: Annotated[NonEmptyText, AfterValidator(_check_repository_url)] = Field(
        description="URL or path of the repository. A relative path starts at the parent folder of the config.",
        examples=["https://git.example.com/fleet.git", "./fleet.git"],
    )
    branch: str = Field(
        "",
        description=(
            "Branch of the repository. The default is clusters/<name> for a target cluster, and main for "
            "other repositories."
        ),
    )
    directory: Annotated[str, AfterValidator(_check_directory)] = Field(
        "", description="Folder of the repository that contains the packages. The default is the root folder."
    )
    tag_prefix: str | None = Field(
        None,
        description=(
            "Prefix of the tags that mark published revisions. The default is <name>/ for a target cluster, "
            "and no prefix for other repositories."
        ),
    )


class RepositorySpec(ApiModel):
    """The Git repository, chart repository or OCI registry, and whether it is a target cluster."""

    is_open: ClassVar = True

    type: RepositoryType = Field(
        "git",
        description="Type of the repository. The spec must contain only the block with this name, for example git.",
    )
    description: Any = Field(None, description="Description.")
    deployment: StrictBool = Field(
        False,
        description=(
            "true: the repository is a target cluster, and its branch contains published packages. false: "
            "the repository contains upstream packages."
        ),
    )
    git: RepositoryGit | None = None
    helm: HelmRepository | None = None
    oci: OciRepository | None = None

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue unless the spec contains exactly the block of its type."""
        repository_type = data.get("type", "git")
        if repository_type not in _REPOSITORY_TYPES:
            return
        others = [name for name in _REPOSITORY_TYPES if name != repository_type and name in data]
        for name in others:
            message = (
                f'{{path}} is not allowed, because {{parent}}.type is "{repository_type}"; use'
                f" {{parent}}.{repository_type}"
            )
            yield FieldIssue(message, (name,))
        if repository_type not in data and not others:
            yield FieldIssue("{path} must be set", (repository_type,), rule="missing")
        if data.get("deployment") is True and repository_type != "git":
            yield FieldIssue("{path} can be true only if {parent}.type is git", ("deployment",))


_REPOSITORY_TYPES = get_args(RepositoryType)


class Repository(Manifest):
    """A repository with upstream packages. If deployment is true, it is a target cluster."""

    api_versions: ClassVar = (PORCH_API_VERSION,)
    is_open: ClassVar = True
    templates: ClassVar = MessageTemplates(
        by_field={
            (error, "repo"): "{path} is required and must be the URL of a Git repository"
            for error in ("missing", "string_too_short")
        }
    )
    annotation_schemas: ClassVar = KUBERNETES_VERSION_SCHEMA

    spec: RepositorySpec
