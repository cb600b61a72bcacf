"""Generators of ApplicationSets: list, clusters, git (directories and files), matrix and merge."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.adopt.argocd.clusters import IN_CLUSTER_SERVER, SECRET_TYPE_LABEL, ArgoCluster
from reconciler.adopt.argocd.templates import TemplateError, normalize_name, render_template
from reconciler.adopt.documents import get_list, get_mapping, get_text
from reconciler.adopt.requests import RepositoryReader
from reconciler.catalog.files import FileTree
from reconciler.krm.globs import matches_glob
from reconciler.krm.selectors import LabelRequirement, LabelSelector
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.parsing import ParseFailure, parse_cached

Parameters = dict[str, Any]
_OPTIONS = frozenset({"selector", "template"})
MAX_PARAMETER_SETS = 50_000


class GeneratorError(Exception):
    """A generator that cannot be imported. `path` is the location of the error, relative to the generator."""

    def __init__(self, message: str, suggestion: str = "", path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.suggestion = suggestion or "List the clusters in a list generator, and run the command again."
        self.path = path


@dataclass(frozen=True)
class GeneratorContext:
    """The inputs of generators."""

    clusters: Sequence[ArgoCluster]
    read_repository: RepositoryReader
    is_go_template: bool


def expand_generator(generator: Mapping[str, Any], context: GeneratorContext) -> list[Parameters]:
    """Return the parameters of each Application that a generator creates.

    Raises:
        GeneratorError: The generator cannot be imported.
    """
    return [*_select(generator, _expand(generator, context, {}), context)]


def _expand(generator: Mapping[str, Any], context: GeneratorContext, outer: Parameters) -> list[Parameters]:
    names = [name for name in generator if name not in _OPTIONS]
    if len(names) != 1 or names[0] not in _EXPANDERS:
        listed = ", ".join(names) or "none"
        raise GeneratorError(
            f"an entry must contain exactly one of the generators {', '.join(_EXPANDERS)}, but contains"
            f" {listed}; the import"
            " supports no generators that call services or plugins",
            path=(*names[:1],),
        )
    name = names[0]
    content = generator[name]
    try:
        rendered = _render(content, outer, context) if outer else content
        return _EXPANDERS[name](rendered if isinstance(rendered, Mapping) else {}, context, outer)
    except TemplateError as error:
        raise GeneratorError(str(error), path=(name,)) from None


def _render(content: Any, outer: Parameters, context: GeneratorContext) -> Any:
    return render_template(content, outer, is_go_template=context.is_go_template)


def _select(
    generator: Mapping[str, Any], found: Iterable[Parameters], context: GeneratorContext
) -> Iterator[Parameters]:
    """Yield the parameters that the selector of a generator matches."""
    if not (data := get_mapping(generator, "selector")):
        yield from found
        return
    selector = read_selector(data)
    for parameters in found:
        flat = flatten(parameters) if context.is_go_template else parameters
        if selector.matches({key: str(value) for key, value in flat.items()}):
            yield parameters


def read_selector(data: Mapping[str, Any]) -> LabelSelector:
    """Return a label selector of Kubernetes.

    Raises:
        GeneratorError: The selector is malformed.
    """
    labels = get_mapping(data, "matchLabels")
    requirements = []
    for entry in get_list(data, "matchExpressions"):
        operator, values = get_text(entry, "operator"), tuple(map(str, get_list(entry, "values")))
        match operator:
            case "In" | "NotIn" | "Exists" | "DoesNotExist":
                requirements.append(LabelRequirement(get_text(entry, "key"), operator, values))
            case _:
                raise GeneratorError(
                    f"the selector has the unknown operator {operator!r}", "Use In, NotIn, Exists or DoesNotExist."
                )
    return LabelSelector(tuple((key, str(value)) for key, value in labels.items()), tuple(requirements))


def flatten(value: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return nested parameters as a flat mapping from names such as `metadata.labels.region` to texts."""
    flat: dict[str, str] = {}
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, Mapping):
            flat |= flatten(item, f"{name}.")
        elif isinstance(item, list):
            flat |= flatten({str(index): entry for index, entry in enumerate(item)}, f"{name}.")
        else:
            flat[name] = "" if item is None else str(item).lower() if isinstance(item, bool) else str(item)
    return flat


def _expand_list(content: Mapping[str, Any], context: GeneratorContext, outer: Parameters) -> list[Parameters]:
    if content.get("elementsYaml"):
        raise GeneratorError("the import does not evaluate elementsYaml", path=("list", "elementsYaml"))
    elements = [element for element in get_list(content, "elements") if isinstance(element, Mapping)]
    return [dict(element) if context.is_go_template else flatten(element) for element in elements]


def _expand_clusters(content: Mapping[str, Any], context: GeneratorContext, outer: Parameters) -> list[Parameters]:
    if content.get("flatList"):
        raise GeneratorError(
            "the import does not support flatList, which creates one Application for all clusters",
            path=("clusters", "flatList"),
        )
    selector = read_selector(get_mapping(content, "selector"))
    is_empty = selector == LabelSelector()
    found = []
    for cluster in context.clusters:
        # A selector matches the labels of cluster Secrets. If the cluster in which Argo CD runs has no Secret, only an
        # empty selector selects this cluster.
        has_secret = SECRET_TYPE_LABEL in cluster.labels or cluster.server != IN_CLUSTER_SERVER
        if (is_empty or has_secret) and selector.matches(cluster.labels):
            parameters: Parameters = {
                "name": cluster.name,
                "nameNormalized": normalize_name(cluster.name),
                "server": cluster.server,
                "metadata": {"labels": dict(cluster.labels), "annotations": dict(cluster.annotations)},
            }
            found.append(_add_values(parameters, content, context))
    return found


def _add_values(parameters: Parameters, content: Mapping[str, Any], context: GeneratorContext) -> Parameters:
    flat = parameters if context.is_go_template else flatten(parameters)
    if values := get_mapping(content, "values"):
        rendered = _render(values, flat, context)
        flat = {**flat, **({"values": rendered} if context.is_go_template else flatten(rendered, "values."))}
    return flat


def _expand_git(content: Mapping[str, Any], context: GeneratorContext, outer: Parameters) -> list[Parameters]:
    url, revision = get_text(content, "repoURL"), get_text(content, "revision")
    files = context.read_repository(url, revision)
    if isinstance(files, str):
        suggestion = "Add credentials for the repository. If SOURCE is a clone of it, add --repo-url instead."
        raise GeneratorError(f"the repository {url} cannot be read: {files}", suggestion, ("git", "repoURL"))
    prefix = get_text(content, "pathParamPrefix")
    if "directories" in content:
        paths = _match(_list_folders(files), get_list(content, "directories"))
        return [_add_values(_build_path(path, prefix, context), content, context) for path in paths]
    found: list[Parameters] = []
    for path in _match(files, get_list(content, "files")):
        for entry in _read_parameter_file(path, files):
            values = dict(entry) if context.is_go_template else flatten(entry)
            path_parameters = _build_path(posixpath.dirname(path), prefix, context, posixpath.basename(path))
            found.append(_add_values({**values, **path_parameters}, content, context))
    return found


def _list_folders(files: FileTree) -> list[str]:
    folders: set[str] = set()
    for path in files:
        parent = posixpath.dirname(path)
        while parent and parent not in folders:
            folders.add(parent)
            parent = posixpath.dirname(parent)
    return sorted(folder for folder in folders if not any(name.startswith(".") for name in folder.split("/")))


def _match(paths: Iterable[str], entries: Sequence[Any]) -> list[str]:
    included = [get_text(entry, "path") for entry in entries if not get_mapping(entry).get("exclude")]
    excluded = [get_text(entry, "path") for entry in entries if get_mapping(entry).get("exclude")]
    return [
        path
        for path in paths
        if any(_matches(path, pattern) for pattern in included)
        and not any(_matches(path, pattern) for pattern in excluded)
    ]


def _matches(path: str, pattern: str) -> bool:
    pattern = pattern.strip("/")
    # In a pattern of Argo CD, `a/**/b` also matches `a/b`.
    return matches_glob(path, pattern) or ("/**/" in pattern and matches_glob(path, pattern.replace("/**/", "/", 1)))


def _read_parameter_file(path: str, files: FileTree) -> list[Mapping[str, Any]]:
    parsed = parse_cached(files[path].data)
    if isinstance(parsed, ParseFailure):
        raise GeneratorError(
            f"the file {path} cannot be parsed: {parsed.message}", "Correct the syntax of the file.", ("git", "files")
        )
    data = parsed.documents[0].data if parsed.documents else {}
    entries = data if isinstance(data, list) else [data]
    return [entry for entry in entries if isinstance(entry, Mapping)]


def _build_path(path: str, prefix: str, context: GeneratorContext, file: str = "") -> Parameters:
    segments, name = path.split("/"), posixpath.basename(path)
    nested: Parameters = {
        "path": path,
        "basename": name,
        "basenameNormalized": normalize_name(name),
        "segments": segments,
    }
    if file:
        nested |= {"filename": file, "filenameNormalized": normalize_name(file)}
    if context.is_go_template:
        return {prefix: {"path": nested}} if prefix else {"path": nested}
    start = f"{prefix}.path" if prefix else "path"
    flat = {f"{start}.{key}": value for key, value in nested.items() if key not in ("path", "segments")}
    return {start: path, **flat, **{f"{start}[{index}]": segment for index, segment in enumerate(segments)}}


def _expand_matrix(content: Mapping[str, Any], context: GeneratorContext, outer: Parameters) -> list[Parameters]:
    generators = [entry for entry in get_list(content, "generators") if isinstance(entry, Mapping)]
    if len(generators) != 2:
        raise GeneratorError(
            f"a matrix must have two generators, but has {len(generators)}", path=("matrix", "generators")
        )
    first = [*_select(generators[0], _expand(generators[0], context, outer), context)]
    found: list[Parameters] = []
    for parameters in first:
        # The second generator can use the parameters of the first generator.
        second = _select(generators[1], _expand(generators[1], context, {**outer, **parameters}), context)
        found += (_merge(parameters, other) for other in second)
        if len(found) > MAX_PARAMETER_SETS:
            raise GeneratorError(
                f"the matrix has more than {MAX_PARAMETER_SETS:,} combinations", "Divide the ApplicationSet."
            )
    return found


def _merge(first: Parameters, second: Parameters) -> Parameters:
    merged = dict(first)
    for key, value in second.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _expand_merge(content: Mapping[str, Any], context: GeneratorContext, outer: Parameters) -> list[Parameters]:
    keys = [str(key) for key in get_list(content, "mergeKeys")]
    generators = [entry for entry in get_list(content, "generators") if isinstance(entry, Mapping)]
    if not keys or len(generators) < 2:
        raise GeneratorError("a merge must have mergeKeys and two or more generators", path=("merge",))
    base, *others = ([*_select(entry, _expand(entry, context, outer), context)] for entry in generators)
    merged = {_build_key(parameters, keys, context): parameters for parameters in base}
    for parameters in (entry for found in others for entry in found):
        key = _build_key(parameters, keys, context)
        if key in merged:
            merged[key] = _merge(merged[key], _nest(parameters) if context.is_go_template else parameters)
    return [*merged.values()]


def _build_key(parameters: Parameters, keys: Sequence[str], context: GeneratorContext) -> tuple[str, ...]:
    flat = flatten(parameters) if context.is_go_template else parameters
    return tuple(str(flat.get(key, "")) for key in keys)


def _nest(parameters: Parameters) -> Parameters:
    """Convert keys with dots to nested mappings: `{"values.redis": x}` becomes `{"values": {"redis": x}}`."""
    nested: Parameters = {}
    for key, value in parameters.items():
        head, dot, rest = key.partition(".")
        nested = _merge(nested, {head: _nest({rest: value})} if dot else {key: value})
    return nested


_EXPANDERS: Mapping[str, Callable[[Mapping[str, Any], GeneratorContext, Parameters], list[Parameters]]] = {
    "list": _expand_list,
    "clusters": _expand_clusters,
    "git": _expand_git,
    "matrix": _expand_matrix,
    "merge": _expand_merge,
}
