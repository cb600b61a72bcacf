"""The Starlark modules that scripts can load.

Modules that need the network, or that are not supported for another reason, only report an error when they are used.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import re2
import starlark

from reconciler.krm.patterns import PatternError, compile_pattern
from reconciler.krm.yaml import emit
from reconciler.packages.functions import starlark_time
from reconciler.packages.functions.starlark_syntax import create_starlark_dialect, create_starlark_globals
from reconciler.packages.parsing import ParseFailure, parse_cached

_REASONS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    # For each module: the exported name, the reason why the module is not supported, and the functions of the exported
    # struct. If the tuple is empty, the exported name is a function and not a struct.
    "bsoup.star": ("bsoup", "parsing HTML is not supported", ("parseHtml",)),
    "geo.star": (
        "geo",
        "geometry is not supported",
        ("point", "line", "polygon", "multipolygon", "within", "intersects", "parseGeoJSON"),
    ),
    "html.star": ("html", "parsing HTML is not supported", ()),
    "http.star": (
        "http",
        "network access is not supported",
        ("get", "post", "put", "patch", "delete", "options", "form"),
    ),
    "xlsx.star": ("xlsx", "network access is not supported", ("get_url",)),
    "zipfile.star": ("ZipFile", "reading archives is not supported", ()),
}


def create_unsupported_modules() -> dict[str, str]:
    """Return the Starlark source of each unsupported module. All functions in the source fail with the reason."""
    return {module: _format_unsupported_source(module, *parts) for module, parts in _REASONS.items()}


def _format_unsupported_source(module: str, name: str, reason: str, functions: tuple[str, ...]) -> str:
    refusal = f'def _refuse(*args, **kwargs):\n    fail("{module} cannot be used: {reason}")\n\n'
    members = ", ".join(f"{function}=_refuse" for function in functions)
    return f"{refusal}{name} = {f'struct({members})' if functions else '_refuse'}\n"


_KRMFN = """
def _field(resource, *names):
    for name in names:
        resource = resource.get(name) if type(resource) == "dict" else None
    return resource

def _match_gvk(resource, apiVersion, kind):
    return resource.get("apiVersion") == apiVersion and resource.get("kind") == kind

def _match_name(resource, name):
    return _field(resource, "metadata", "name") == name

def _match_namespace(resource, namespace):
    return _field(resource, "metadata", "namespace") == namespace

krmfn = struct(match_gvk=_match_gvk, match_name=_match_name, match_namespace=_match_namespace)
"""
_RE = """
def _compile(pattern):
    return struct(
        findall=lambda text: _findall(pattern, text),
        match=lambda text: _match(pattern, text),
        search=lambda text: _search(pattern, text),
        split=lambda text, maxsplit=0: _split(pattern, text, maxsplit),
        sub=lambda repl, text, count=0: _sub(pattern, repl, text, count),
    )

re = struct(compile=_compile, findall=_findall, match=_match, search=_search, split=_split, sub=_sub)
"""
_ENCODINGS: Mapping[str, tuple[bool, bool]] = {
    # For each encoding: whether it uses the alphabet that is safe for URLs, and whether it pads the text with "=".
    "standard": (False, True),
    "standard_raw": (False, False),
    "url": (True, True),
    "url_raw": (True, False),
}
_MAX_GROUPS = 100
_GO_GROUP = re2.compile(r"\$(?:\{(\w+)\}|(\w+))")


def _compile_regex(pattern: str) -> Any:
    try:
        compiled = compile_pattern(pattern, captures=True)
    except PatternError as error:
        raise ValueError(f"{pattern[:200]!r} must be a valid regular expression: {error}") from error
    if compiled.groups > _MAX_GROUPS:
        raise ValueError(f"{pattern[:200]!r} must not have more than {_MAX_GROUPS} groups")
    return compiled


def _findall(pattern: str, text: str) -> list[str]:
    return [match.group(0) for match in _compile_regex(pattern).finditer(text)]


def _match(pattern: str, text: str) -> list[list[str]]:
    return [
        [match.group(0), *(group or "" for group in match.groups())] for match in _compile_regex(pattern).finditer(text)
    ]


def _search(pattern: str, text: str) -> list[int] | None:
    match = _compile_regex(pattern).search(text)
    return list(match.span()) if match else None


def _split(pattern: str, text: str, maxsplit: int = 0) -> list[str]:
    return list(_compile_regex(pattern).split(text, maxsplit))


def _sub(pattern: str, repl: str, text: str, count: int = 0) -> str:
    def filled(match: Any) -> str:
        return str(_GO_GROUP.sub(lambda group: _group(match, group.group(1) or group.group(2)), repl))

    return str(_compile_regex(pattern).sub(filled, text, count))


def _group(match: Any, name: str) -> str:
    try:
        return match.group(int(name) if name.isdecimal() else name) or ""
    except (IndexError, KeyError):
        return ""  # As in Go, a reference to a group that does not exist is replaced by "".


def _loads(text: str) -> Any:
    parsed = parse_cached(text.encode())
    if isinstance(parsed, ParseFailure):
        raise ValueError(parsed.message)  # noqa: TRY004 - the error is in the script's data, not in a type
    return parsed.documents[0].data if parsed.documents else None


def _encode(text: str, encoding: str = "standard") -> str:
    url, padded = _ENCODINGS[encoding]
    encoded = (base64.urlsafe_b64encode if url else base64.b64encode)(text.encode()).decode()
    return encoded if padded else encoded.rstrip("=")


def _decode(text: str, encoding: str = "standard") -> str:
    url, _ = _ENCODINGS[encoding]
    padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
    return (base64.urlsafe_b64decode if url else base64.b64decode)(padded).decode()


def _encode_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _indent_json(text: str, prefix: str = "", indent: str = "\t") -> str:
    return json.dumps(json.loads(text), ensure_ascii=False, indent=indent).replace("\n", f"\n{prefix}")


_CSV = """
def _read_all(
    source, comma=",", comment="", lazy_quotes=False, trim_leading_space=False, fields_per_record=0, skip=0, limit=0
):
    rows = _rows(source, comma, comment, lazy_quotes, trim_leading_space, fields_per_record)[skip:]
    return rows[:limit] if limit > 0 else rows

def _write_all(source, comma=","):
    return _lines([[str(value) for value in row] for row in source], comma)

csv = struct(read_all=_read_all, write_all=_write_all)
"""


def _rows(text: str, comma: str, comment: str, lazy: bool, trimmed: bool, fields: int) -> list[list[str]]:
    lines = [line for line in text.splitlines(keepends=True) if not (comment and line.startswith(comment))]
    try:
        rows = [row for row in csv.reader(lines, delimiter=comma, skipinitialspace=trimmed, strict=not lazy) if row]
    except csv.Error as error:
        raise ValueError(f"the text must be CSV: {error}") from error
    field_count = fields or len(rows[0]) if rows else 0
    invalid_row = next((row for row in rows if len(row) != field_count), None)
    if invalid_row is not None and fields >= 0:
        raise ValueError(f"every row must have {field_count} fields, but has {len(invalid_row)}")
    return rows


def _lines(rows: list[list[str]], comma: str) -> str:
    buffer = io.StringIO()
    csv.writer(buffer, delimiter=comma, lineterminator="\n").writerows(rows)
    return buffer.getvalue()


def _hash(name: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(name, text.encode(), usedforsecurity=False).hexdigest()


def _dumps(value: Any) -> str:
    return emit(_sort_keys(value))


def _sort_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sort_keys(value[key]) for key in sorted(value, key=str)}
    return [_sort_keys(entry) for entry in value] if isinstance(value, list) else value


_MATH_FUNCTIONS = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "degrees",
    "exp",
    "fabs",
    "floor",
    "gamma",
    "hypot",
    "log",
    "pow",
    "radians",
    "remainder",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]
_MATH: dict[str, Callable[..., Any]] = {name: getattr(math, name) for name in _MATH_FUNCTIONS}
_ModuleSource = tuple[str, Mapping[str, Callable[..., Any]]]


def _create_struct_module(name: str, functions: Mapping[str, Callable[..., Any]], constants: str = "") -> _ModuleSource:
    """Return the source of a module that exports one struct, e.g. `re`, with these functions and constants."""
    members = ", ".join(f"{function}=_{function}" for function in functions)
    return f"{name} = struct({members}{constants})\n", {f"_{key}": function for key, function in functions.items()}


_MODULES: Mapping[str, _ModuleSource] = {
    "krmfn.star": (_KRMFN, {}),
    "encoding/json.star": _create_struct_module(
        "json", {"encode": _encode_json, "decode": json.loads, "indent": _indent_json}
    ),
    "encoding/yaml.star": _create_struct_module("yaml", {"loads": _loads, "dumps": _dumps}),
    "encoding/base64.star": _create_struct_module("base64", {"encode": _encode, "decode": _decode}),
    "re.star": (
        _RE,
        {"_findall": _findall, "_match": _match, "_search": _search, "_split": _split, "_sub": _sub},
    ),
    "math.star": _create_struct_module(
        "math",
        _MATH | {"mod": math.fmod, "round": round},
        f", e={math.e!r}, pi={math.pi!r}",
    ),
    "encoding/csv.star": (_CSV, {"_rows": _rows, "_lines": _lines}),
    "hash.star": _create_struct_module("hash", {name: _hash(name) for name in ("md5", "sha1", "sha256")}),
    "time.star": (starlark_time.TIME_MODULE_SOURCE, starlark_time.TIME_MODULE_FUNCTIONS),
    **{name: (source, {}) for name, source in create_unsupported_modules().items()},
}


@cache
def load_starlark_module(name: str) -> starlark.FrozenModule:
    """Return the module that scripts load by `name`, e.g. "re.star".

    Raises:
        FileNotFoundError: No module has this name.
    """
    if name not in _MODULES:
        raise FileNotFoundError(f"{name} is an unknown module; known modules are {', '.join(_MODULES)}")
    source, functions = _MODULES[name]
    module = starlark.Module()
    for key, function in functions.items():
        module.add_callable(key, function)
    starlark.eval(module, starlark.parse(name, source, create_starlark_dialect()), create_starlark_globals())
    return module.freeze()
