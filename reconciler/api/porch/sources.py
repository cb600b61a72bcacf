"""Several sources of a package, instead of one upstream."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, StrictBool

from reconciler.api.base import FieldIssue, issue
from reconciler.api.field_types import NOT_EMPTY, NonEmptyText, check_text
from reconciler.api.helm_options import CONFIG_SOURCE, HelmOptions
from reconciler.api.kustomize_options import KustomizeOptions
from reconciler.api.porch.upstream import UpstreamSpec, set_kustomize_kind
from reconciler.krm.field_text import quote_value
from reconciler.krm.names import validate_dns_label, validate_tree_path


class SourceUpstream(UpstreamSpec):
    """The location and revision of one of several sources of a package."""

    # Unlike in an upstream, `ref` is not another name of the field `tag`.
    deprecated_names: ClassVar = {}

    ref: StrictBool = Field(
        False,
        description=(
            "Whether only values files of charts are read from the source, with $<name>/path in valuesFiles. The field "
            "package can then be absent, which is the root folder."
        ),
    )

    @property
    def has_resources(self) -> bool:
        """Whether the files are resources of the package, and not only values files."""
        return not self.ref


def _validate_source_name(name: str) -> str | None:
    if name == CONFIG_SOURCE:
        return f'"{CONFIG_SOURCE}" is the name of the config repository'
    return validate_dns_label(name)


def _check_source_directory(directory: str) -> str:
    if directory and (directory.startswith("/") or validate_tree_path(directory)):
        rule = 'the path of a folder in the package, without "..", and without a slash at its start and end'
        raise issue(f"{{path}} must be {rule}, but is {quote_value(directory)}", "PathInvalid")
    return directory


class SourceSpec(SourceUpstream):
    """One of several sources of a package. It has the fields of an upstream."""

    name: Annotated[NonEmptyText, check_text(_validate_source_name, "{path} is invalid")] = Field(
        description="Unique name of the source. $<name>/path in valuesFiles is a file of the source."
    )
    directory: Annotated[str, AfterValidator(_check_source_directory)] = Field(
        "", description="Folder of the package that receives the files. The default is the root folder of the package."
    )
    helm: HelmOptions | None = Field(
        None, description="How a Helm chart is rendered. These options replace the options for all sources."
    )

    kustomize: KustomizeOptions | None = Field(None, description="How a Kustomize overlay is built.")

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Set `kind` to `kustomize` if options for Kustomize are present."""
        return set_kustomize_kind(data) if data.get("kustomize") and data.get("ref") is not True else data

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield the issues of a source. If `ref` is true, also yield an issue for each field without an effect."""
        if data.get("ref") is not True:
            yield from super().find_issues(data)
            return
        yield from super().find_issues({"package": "", **data})
        for name in ("directory", "helm", "kustomize", "kind"):
            if name in data:
                yield FieldIssue("{path} has no effect if {parent}.ref is true; remove one of the two fields", (name,))

    @cached_property
    def upstream(self) -> SourceUpstream:
        """The location and revision of the source, without its name and its options."""
        return SourceUpstream.model_construct(**{name: getattr(self, name) for name in SourceUpstream.model_fields})

    def as_data(self) -> dict[str, Any]:
        """Return the source in the notation of the API, without default values."""
        data = super().as_data()
        return data if self.ref else {name: value for name, value in data.items() if name != "ref"}


def find_source_issues(data: Mapping[str, Any], others: Sequence[str]) -> Iterator[FieldIssue]:
    """Yield the issues of the fields `sources` and `onRepeatedResource`.

    Args:
        others: The fields that cannot be used together with `sources`.
    """
    if "sources" not in data:
        if "onRepeatedResource" in data:
            yield FieldIssue("{path} requires {parent}.sources", ("onRepeatedResource",))
        return
    for name in others:
        if name in data:
            yield FieldIssue("{path} must not be specified together with {parent}.sources", (name,))
    entries = data["sources"]
    sources = [entry for entry in entries if isinstance(entry, Mapping)] if isinstance(entries, list | tuple) else []
    if sources and all(entry.get("ref") is True for entry in sources):
        yield FieldIssue("{path} must contain a source without `ref: true`", ("sources",))
    names = [entry.get("name") for entry in sources]
    for name in dict.fromkeys(name for name in names if isinstance(name, str) and names.count(name) > 1):
        yield FieldIssue(f"{{path}} must not contain two sources with the name {quote_value(name)}", ("sources",))


Sources = Annotated[
    tuple[SourceSpec, ...],
    *NOT_EMPTY,
    Field(description="Sources of the package, instead of one upstream. Their files form one package."),
]


def get_main_source(sources: Sequence[SourceSpec]) -> SourceSpec:
    """Return the first source with resources."""
    return next(source for source in sources if source.has_resources)
