"""Conversion of Applications and ApplicationSets to package requests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.adopt.argocd.clusters import ArgoCluster, find_cluster_identity, find_cluster_name, read_clusters
from reconciler.adopt.argocd.contents import GROUP, ApplicationSource
from reconciler.adopt.argocd.generators import GeneratorContext, GeneratorError, Parameters, expand_generator
from reconciler.adopt.argocd.names import ValuesFolders
from reconciler.adopt.argocd.sources import convert_source
from reconciler.adopt.argocd.templates import TemplateError, render_template
from reconciler.adopt.documents import SourceDocument, get_list, get_mapping, get_text, has_kind, read_documents
from reconciler.adopt.requests import PackageRequest, ReadRequests, RepositoryReader
from reconciler.adopt.units import AGENT_SUGGESTION, NotImported
from reconciler.catalog.files import FileTree
from reconciler.krm.names import validate_dns_label, validate_dns_subdomain
from reconciler.lazy_dataclasses import dataclass, replace

_CREATE_NAMESPACE = "CreateNamespace=true"
_SYNC_WAVE = "argocd.argoproj.io/sync-wave"


@dataclass(frozen=True)
class _Application:
    """An Application in a file, or an Application that an ApplicationSet creates.

    Attributes:
        set_name: The name of the ApplicationSet, or of the Application.
        path: The YAML path of the Application in its document.
    """

    document: SourceDocument
    set_name: str
    name: str
    data: Mapping[str, Any]
    path: tuple[str, ...] = ()


def is_argocd(files: FileTree) -> bool:
    """Return whether the imported files contain an Application or ApplicationSet of Argo CD."""
    documents, _ = read_documents(files, GROUP)
    return any(has_kind(document, GROUP, ("Application", "ApplicationSet")) for document in documents)


def read_argocd(files: FileTree, read_repository: RepositoryReader) -> ReadRequests:
    """Return the package requests of all Applications and ApplicationSets in the imported files."""
    documents, unreadable = read_documents(files, GROUP)
    clusters = read_clusters(documents)
    not_imported = [*unreadable]
    requests: dict[tuple[str, str], PackageRequest] = {}
    folders = ValuesFolders()
    identities: dict[str, str] = {}
    for document in documents:
        for application in _list_applications(document, clusters, read_repository, not_imported):
            request = _convert(application, clusters, read_repository, folders, not_imported)
            if request is None:
                continue
            identity = find_cluster_identity(get_mapping(application.data, "spec", "destination"), clusters)
            if (known := identities.setdefault(request.cluster, identity)) != identity:
                reason = f'the clusters {known!r} and {identity!r} have the same name "{request.cluster}" in the config'
                suggestion = "Rename one of the clusters."
                not_imported.append(document.report((*application.path, "spec", "destination"), reason, suggestion))
                continue
            key = (request.cluster, request.package)
            if key in requests:
                reason = (
                    f"the package {request.cluster}/{request.package} is also that of Application {requests[key].name}"
                )
                not_imported.append(document.report((), reason, "Rename one of the Applications."))
            else:
                requests[key] = request
    labels = {find_cluster_name({"name": cluster.name}, clusters): cluster.own_labels for cluster in clusters}
    return ReadRequests(tuple(requests.values()), labels, tuple(not_imported))


def _list_applications(
    document: SourceDocument,
    clusters: Sequence[ArgoCluster],
    read_repository: RepositoryReader,
    not_imported: list[NotImported],
) -> Iterator[_Application]:
    if has_kind(document, GROUP, ("Application",)):
        yield _Application(document, document.name, document.name, document.data)
    elif has_kind(document, GROUP, ("ApplicationSet",)):
        yield from _expand_set(document, clusters, read_repository, not_imported)


def _expand_set(
    document: SourceDocument,
    clusters: Sequence[ArgoCluster],
    read_repository: RepositoryReader,
    not_imported: list[NotImported],
) -> Iterator[_Application]:
    spec = document.spec
    if spec.get("templatePatch"):
        suggestion = "Write the patched fields into the template, and run the command again."
        not_imported.append(
            document.report(("spec", "templatePatch"), "the import does not evaluate templatePatch", suggestion)
        )
        return
    if spec.get("strategy"):
        reason = "the import does not copy the order of updates (spec.strategy)"
        not_imported.append(document.report(("spec", "strategy"), reason, "Use an override policy with a rollout."))
    context = GeneratorContext(clusters, read_repository, spec.get("goTemplate") is True)
    found: dict[str, Mapping[str, Any]] = {}
    reported = len(not_imported)
    for index, generator in enumerate(get_list(spec, "generators")):
        path = ("spec", "generators", index)
        if not isinstance(generator, Mapping):
            continue
        try:
            for parameters in expand_generator(generator, context):
                application = _render_application(document, generator, parameters, context)
                if application.name not in found:
                    found[application.name] = application.data
                    yield application
                elif application.data != found[application.name]:
                    reason = f"several different Applications have the name {application.name!r}"
                    suggestion = "Add the missing parameters to the name, such as the name of the cluster."
                    path_of_name = ("spec", "template", "metadata", "name")
                    not_imported.append(document.report(path_of_name, reason, suggestion))
        except GeneratorError as error:
            not_imported.append(document.report((*path, *error.path), str(error), error.suggestion))
        except TemplateError as error:
            suggestion = "Write the values into the template, and run the command again."
            not_imported.append(document.report(("spec", "template"), str(error), suggestion))
    if not found and len(not_imported) == reported:
        suggestion = "Add the cluster Secrets, or the files that the generators read, to the source."
        not_imported.append(document.report(("spec", "generators"), "the generators create no Application", suggestion))


def _render_application(
    document: SourceDocument, generator: Mapping[str, Any], parameters: Parameters, context: GeneratorContext
) -> _Application:
    template: Any = get_mapping(document.spec, "template")
    # A generator can contain its own template, which overrides the template of the ApplicationSet.
    for name, content in generator.items():
        override = content if name == "template" else get_mapping(content, "template")
        template = _override(template, override)
    data = render_template(template, parameters, is_go_template=context.is_go_template)
    name = get_text(get_mapping(data, "metadata"), "name")
    return _Application(document, document.name, name, data, ("spec", "template"))


def _override(below: Any, above: Any) -> Any:
    if isinstance(below, Mapping) and isinstance(above, Mapping):
        return {**below, **{key: _override(below.get(key), value) for key, value in above.items()}}
    return above if above not in (None, "") else below


def _convert(
    application: _Application,
    clusters: Sequence[ArgoCluster],
    read_repository: RepositoryReader,
    folders: ValuesFolders,
    not_imported: list[NotImported],
) -> PackageRequest | None:
    """Return the package request of an Application.

    If the Application cannot be imported, add the reason to `not_imported`, and return None.
    """
    document, spec = application.document, get_mapping(application.data, "spec")
    not_imported += _list_ignored_fields(application)
    destination = get_mapping(spec, "destination")
    cluster = find_cluster_name(destination, clusters)
    package = _choose_package(application, cluster)
    for place, title, reason, suggestion in (
        (
            ("spec", "destination"), f"name {cluster!r} of the cluster", validate_dns_label(cluster),
            "Set destination.name, or add the cluster Secret to the source.",
        ),
        (("metadata", "name"), f"package name {package!r}", validate_dns_subdomain(package), "Rename the Application."),
    ):  # fmt: skip
        if reason:
            text = f"Application {application.name}: the {title} is invalid: {reason}"
            not_imported.append(document.report((*application.path, *place), text, suggestion))
            return None
    namespace = get_text(destination, "namespace")
    source = ApplicationSource(application.name, document, application.path, spec, namespace, folders)
    converted = convert_source(source, read_repository)
    if isinstance(converted, NotImported):
        not_imported.append(converted)
        return None
    request = PackageRequest(
        application.set_name,
        application.name,
        cluster,
        package,
        converted.upstream,
        converted.helm,
        source.namespace,
        converted.config_files,
        document.file,
        converted.kustomize,
        converted.sources,
    )
    return _add_created_namespace(request, application, not_imported)


def _add_created_namespace(
    request: PackageRequest, application: _Application, not_imported: list[NotImported]
) -> PackageRequest:
    """Return the request with the Namespace that Argo CD creates.

    If the package cannot contain the Namespace, add the reason to `not_imported`.
    """
    options = get_list(get_mapping(application.data, "spec", "syncPolicy"), "syncOptions")
    if _CREATE_NAMESPACE not in options:
        return request
    if request.helm is None:
        text = f"Application {application.name}: {_CREATE_NAMESPACE} is imported only for packages with one chart"
        path = (*application.path, "spec", "syncPolicy", "syncOptions")
        not_imported.append(application.document.report(path, text, "Add the Namespace to the package."))
        return request
    return replace(request, helm=replace(request.helm, flags={**request.helm.flags, "createNamespace": True}))


def _choose_package(application: _Application, cluster: str) -> str:
    """Return the name of an Application without the name of its cluster at the start or end.

    If nothing remains, return the name of the ApplicationSet.
    """
    name = application.name
    if name == cluster:
        return application.set_name
    without_suffix = name.removesuffix(f"-{cluster}")
    return without_suffix if without_suffix != name else name.removeprefix(f"{cluster}-")


def _list_ignored_fields(application: _Application) -> Iterable[NotImported]:
    document, spec = application.document, get_mapping(application.data, "spec")
    if spec.get("ignoreDifferences"):
        yield document.report(
            (*application.path, "spec", "ignoreDifferences"),
            "the import does not copy ignoreDifferences",
            AGENT_SUGGESTION,
        )
    if _SYNC_WAVE in get_mapping(application.data, "metadata", "annotations"):
        yield document.report(
            (*application.path, "metadata", "annotations", _SYNC_WAVE),
            "the import does not copy the order of Applications (sync waves)",
            AGENT_SUGGESTION,
        )
