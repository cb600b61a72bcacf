"""Configs with the secret of a plugin in every plausible position and format.

`shipper` declares `token` as secret, and has a Plugin on every cluster; `other` declares `token` differently or not.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.unit.controllers.plugin_presets.controller_world import (
    build_cluster,
    build_definition,
    build_object,
    build_option,
    build_organization,
    build_override,
    build_plugin,
    build_preset,
    build_secret_value,
    build_value,
)

MARK = "hunter2-in-plain-sight"
VALUES: list[Any] = [MARK, f"{MARK}\nand: more", [MARK], {"a": [MARK]}, {MARK: 1}]
TEXTS = [
    MARK, f"'{MARK}", f"{MARK}-${{global.none}}", f"${{'{MARK}'}}", f"${{{MARK}}}", f"${{'{MARK}' + 1}}",
    f"[{MARK}, ${{global.greenhouse.clusterName}}]", f"{{a: ${{int('{MARK}')}}}}",
]  # fmt: skip
FROM: list[Any] = [
    MARK, [MARK], {MARK: 1}, {"secret": MARK}, {"secret": [MARK]}, {"secret": {MARK: 1}}, {"secret": {"name": [MARK]}},
    {"secret": {"name": "s", "key": {"a": MARK}}}, {"secret": {"name": "s", "key": "k", MARK: 1}}, {"value": MARK},
    {"secret": {"name": "s", "key": "k"}, "key": MARK}, {"secret": "s", "key": [MARK]}, {"ref": MARK},
    {"ref": {"kind": MARK, "name": MARK}},
]  # fmt: skip
# invalid entries that result from typing errors
SLIPS: list[Any] = [
    MARK, f"token: {MARK}", [MARK], {"token": MARK}, {"token": {"value": MARK}}, {"name": {"token": MARK}},
    {"name": ["token", MARK]}, {"name": "token", MARK: MARK}, {"name": "token", "values": MARK},
    {"name": "token", "Value": [MARK]}, {"name": f"token={MARK}", "value": 1}, {"name": f"token={MARK}"},
    {"value": MARK}, {"name": "token", "path": MARK, "value": 1}, {"name": "token", "path": "tokens", "value": MARK},
    {"name": "token", "value": MARK, "expression": MARK}, {"name": "token", "expression": [MARK]},
    {"name": "token", "value": MARK, "valueFrom": {"secret": MARK}},
]  # fmt: skip
LISTS: list[Any] = [MARK, {"token": MARK}, {"name": "token", "value": MARK}, [[MARK]], [[{"token": MARK}]]]

ENTRIES: st.SearchStrategy[Any] = st.one_of(
    *(st.sampled_from(VALUES).map(lambda value: build_value("token", value)) for _ in range(3)),
    st.sampled_from(TEXTS).map(lambda text: {"name": "token", "expression": text}),
    st.sampled_from(FROM).map(lambda value: {"name": "token", "valueFrom": value}),
    st.sampled_from(SLIPS),
)
PLANTED: st.SearchStrategy[Any] = st.one_of(
    *(st.lists(ENTRIES, min_size=1, max_size=2) for _ in range(4)),
    st.sampled_from(LISTS),
    ENTRIES.map(lambda entry: [entry, entry]),
)
REACH: st.SearchStrategy[dict[str, Any]] = st.sampled_from([
    {}, {"definitions": ["shipper"]}, {"clusters": {"clusterNames": ["east"]}}, {"mode": "Default"},
])  # fmt: skip
OTHER = st.sampled_from(["", "string", "int", "bool", "list", "map"])
PLACES = [
    "preset", "preset-cluster", "preset-clusters", "preset-plugin", "organization", "cluster", "override",
    "override", "plugin", "default", "definition", "unread",
]  # fmt: skip
FOR_MANY = ("organization", "cluster", "override")


@st.composite
def texts(draw: st.DrawFn) -> list[str]:
    """Return the documents of a config with the secret in one or more positions."""
    places = draw(st.lists(st.sampled_from(PLACES), unique=True, min_size=1, max_size=3))
    if "definition" in places:
        # a definition with unreadable options declares no secret
        places = [place for place in places if place not in FOR_MANY]
    own: dict[str, Any] = {place: draw(PLANTED) if place in places else () for place in PLACES}
    kind = draw(OTHER)
    documents = [
        _shipper(own["default"], own["definition"], draw(st.sampled_from(["secret", "Secret"]))),
        build_definition([build_option("token", kind)] if kind else (), "other"),
        _organization(own["organization"]),
        build_cluster("east"), _cluster(own["cluster"]), _logs(own),
        build_preset(name="others", definition="other"),
        _plugin(own["plugin"]),
    ]  # fmt: skip
    if own["override"]:
        documents.append(_override(own["override"], draw(REACH)))
    if own["unread"]:
        documents.append(f"kind: PluginPreset\ntoken: {MARK}: [\n")
    if draw(st.booleans()):
        documents.append(
            build_override([build_secret_value("token")], "by-reference", definitions=["shipper"], priority=9)
        )
    return documents


def _logs(own: dict[str, Any]) -> str:
    overrides: Any = own["preset-clusters"] or [{"clusterName": "east", "overrides": own["preset-cluster"] or []}]
    spec = {"clusterOptionOverrides": overrides}
    if own["preset-plugin"]:
        return build_preset(spec={**spec, "plugin": own["preset-plugin"]})
    return build_preset(plugin={"optionValues": own["preset"] or []}, spec=spec)


def _shipper(default: Any, options: Any, kind: str) -> str:
    if not options:
        default = default[0] if isinstance(default, list) else default or None
        options = [build_option("token", kind if default else "secret", default)]
    chart = {"name": "shipper-chart", "repository": "oci://charts.example.test/obs", "version": "1.0.0"}
    return build_object("PluginDefinition", "shipper", {"version": "2.0.0", "helmChart": chart, "options": options})


def _organization(overrides: Any) -> str:
    if not overrides:
        return build_organization()
    return build_object("Organization", "acme", {"pluginOverrides": overrides}, namespace="")


def _cluster(overrides: Any) -> str:
    if not overrides:
        return build_cluster("west")
    return build_object("Cluster", "west", {"pluginOverrides": overrides}, labels={"tier": "edge"})


def _override(entries: Any, reach: dict[str, Any]) -> str:
    return build_override((), "planted", **reach, overrides=entries)


def _plugin(entries: Any) -> str:
    return build_plugin((), releaseName="boards", **({"optionValues": entries} if entries else {}))
