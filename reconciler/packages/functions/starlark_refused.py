"""Modules that scripts may load, as upstream's do, and may not use: what they give depends on the world or on luck."""

from __future__ import annotations

from collections.abc import Mapping

_REASONS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    # module: (the name it gives, why nothing in it can be used, its functions; none where it is one itself)
    "bsoup.star": ("bsoup", "HTML cannot be read here", ("parseHtml",)),
    "geo.star": (
        "geo",
        "geometry cannot be worked out here",
        ("point", "line", "polygon", "multipolygon", "within", "intersects", "parseGeoJSON"),
    ),
    "html.star": ("html", "HTML cannot be read here", ()),
    "http.star": ("http", "there is no network", ("get", "post", "put", "patch", "delete", "options", "form")),
    "xlsx.star": ("xlsx", "there is no network", ("get_url",)),
    "zipfile.star": ("ZipFile", "archives cannot be read here", ()),
}


def refused_modules() -> dict[str, str]:
    """Return the source of every such module, by its name; each call of what it gives fails, and says why."""
    return {module: _source(module, *parts) for module, parts in _REASONS.items()}


def _source(module: str, name: str, reason: str, functions: tuple[str, ...]) -> str:
    refusal = f'def _refuse(*args, **kwargs):\n    fail("{module} cannot be used: {reason}")\n\n'
    members = ", ".join(f"{function}=_refuse" for function in functions)
    return f"{refusal}{name} = {f'struct({members})' if functions else '_refuse'}\n"
