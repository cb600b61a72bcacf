"""Merging Kptfiles: every lost change is reported, whatever names the functions have."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.krm.merge3 import SAFE
from reconciler.packages.kptfile import Kptfile, read_kptfile
from reconciler.packages.update.kptfile_merge import merge_kptfile
from reconciler.packages.update.options import MergeOptions
from tests.support.examples import examples

DATA = Path(__file__).resolve().parents[2] / "../shared/data"
KPTFILES = sorted(DATA.rglob("Kptfile"))
# selected by name, because the list of their shapes is long
OPTIONS = {"upstream": MergeOptions(), "local": MergeOptions(rules=replace(SAFE, winner="local"))}
EXAMPLES = settings(deadline=None, max_examples=examples(80))

IMAGES = ("set-labels:v0.1", "ghcr.io/kptdev/set-labels:v0.2", "set-namespace:v0.4.1", "apply-setters", "starlark:v0.5")
TEXTS = st.sampled_from(("a", "b", "c"))
CONFIG = st.dictionaries(st.sampled_from(("x", "y", "z")), TEXTS, max_size=3)
SELECTORS = st.lists(st.fixed_dictionaries({"kind": st.sampled_from(("A", "B"))}, optional={"name": TEXTS}), max_size=2)
FUNCTION = st.fixed_dictionaries(
    {"image": st.sampled_from(IMAGES)},
    optional={"name": TEXTS, "configMap": CONFIG, "selectors": SELECTORS, "exclude": SELECTORS, "own": TEXTS},
)
FUNCTIONS = st.lists(FUNCTION, max_size=4)
INFO = st.fixed_dictionaries(
    {},
    optional={
        "description": TEXTS,
        "keywords": st.lists(TEXTS, unique=True, max_size=3),
        "readinessGates": st.lists(TEXTS.map(lambda text: {"conditionType": text}), unique_by=str, max_size=3),
    },
)
BODY = st.fixed_dictionaries(
    {},
    optional={
        "pipeline": st.fixed_dictionaries({}, optional={"mutators": FUNCTIONS, "validators": FUNCTIONS}),
        "info": INFO,
        "unknown": st.dictionaries(TEXTS, TEXTS),
    },
)


def kptfile(body: dict[str, Any]) -> Kptfile:
    data = {"apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": {"name": "app"}, **body}
    read = read_kptfile(yaml.safe_dump(data, sort_keys=False).encode())
    assert isinstance(read, Kptfile), read
    return read


Bodies = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


@dataclass(frozen=True)
class Edit:
    """One edit of a pipeline. Numbers are taken modulo the number of entries."""

    what: str
    at: int
    function: dict[str, Any]

    def of(self, functions: list[dict[str, Any]]) -> list[dict[str, Any]]:
        functions = copy.deepcopy(functions)
        at = self.at % (len(functions) + (self.what == "add") or 1)
        if self.what == "add":
            functions.insert(at, self.function)
        elif functions:
            EDITS[self.what](functions, at, self.function)
        return functions


def configure(functions: list[dict[str, Any]], at: int, function: dict[str, Any]) -> None:
    functions[at]["configMap"] = {**functions[at].get("configMap", {}), **function.get("configMap", {"x": "own"})}


def bump(functions: list[dict[str, Any]], at: int, function: dict[str, Any]) -> None:
    functions[at]["image"] = functions[at]["image"].partition(":")[0] + ":v9"


def name(functions: list[dict[str, Any]], at: int, function: dict[str, Any]) -> None:
    functions[at]["name"] = function.get("name", "n")


def remove(functions: list[dict[str, Any]], at: int, function: dict[str, Any]) -> None:
    del functions[at]


EDITS: dict[str, Callable[[list[dict[str, Any]], int, dict[str, Any]], None]] = {
    "configure": configure,
    "bump": bump,
    "name": name,
    "remove": remove,
}
EDIT = st.builds(Edit, st.sampled_from(("add", *EDITS)), st.integers(0, 9), FUNCTION)


def edited(body: dict[str, Any], edits: list[Edit]) -> dict[str, Any]:
    functions = body.get("pipeline", {}).get("mutators", [])
    for edit in edits:
        functions = edit.of(functions)
    return {**body, "pipeline": {**body.get("pipeline", {}), "mutators": functions}}


@st.composite
def triples(draw: st.DrawFn) -> Bodies:
    """The bodies of three Kptfiles, mostly edits of one."""
    origin = draw(BODY)
    updated = draw(st.one_of(BODY, st.lists(EDIT, max_size=3).map(lambda edits: edited(origin, edits))))
    local = draw(st.one_of(BODY, st.lists(EDIT, max_size=3).map(lambda edits: edited(origin, edits))))
    return origin, updated, local


WINNER = st.sampled_from(tuple(OPTIONS))


@EXAMPLES
@given(triples(), WINNER)
def test_what_one_side_did_is_what_comes_out(sides: Bodies, winner: str) -> None:
    origin, updated, local = map(kptfile, sides)

    assert merge_kptfile(origin, origin, local, OPTIONS[winner]) == (local, ())
    assert merge_kptfile(origin, updated, updated, OPTIONS[winner]) == (updated, ())
    value, conflicts = merge_kptfile(origin, updated, origin, OPTIONS[winner])
    assert (value.to_bytes(), conflicts) == (updated.to_bytes(), ())


@EXAMPLES
@given(triples(), WINNER)
def test_a_second_merge_is_silent(sides: Bodies, winner: str) -> None:
    origin, updated, local = map(kptfile, sides)
    merged, _ = merge_kptfile(origin, updated, local, OPTIONS[winner])

    assert merge_kptfile(updated, updated, merged, OPTIONS[winner]) == (merged, ())
    read = read_kptfile(merged.to_bytes())
    assert isinstance(read, Kptfile)
    assert read.data == merged.data


@EXAMPLES
@given(triples(), WINNER)
def test_lost_changes_are_reported(sides: Bodies, winner: str) -> None:
    origin, updated, local = map(kptfile, sides)
    merged, conflicts = merge_kptfile(origin, updated, local, OPTIONS[winner])

    if not conflicts:
        own = facts(local) - facts(origin)
        assert own <= facts(merged)
        assert facts(updated) - facts(origin) <= facts(merged)


def facts(kptfile: Kptfile) -> set[str]:
    """Return the content of a Kptfile in parts that do not depend on its order."""
    result: set[str] = set()
    for stage in ("mutators", "validators"):
        for function in (kptfile.data.get("pipeline") or {}).get(stage) or []:
            result |= {f"{stage} {field} {entry}" for field, value in function.items() for entry in entries(value)}
    for section in ("info", "unknown"):
        for field, value in (kptfile.data.get(section) or {}).items():
            result |= {f"{section} {field} {entry}" for entry in entries(value)}
    return result


def entries(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [f"{key} {entry}" for key, entry in value.items()]
    return [json.dumps(entry, sort_keys=True) for entry in (value if isinstance(value, list) else [value])]


@EXAMPLES
@given(BODY, st.lists(EDIT, max_size=3), st.lists(EDIT, max_size=3), st.lists(FUNCTION, min_size=1, max_size=2), WINNER)
def test_functions_of_a_variant_lose_no_change(
    origin: dict[str, Any], upstream: list[Edit], here: list[Edit], own: list[dict[str, Any]], winner: str
) -> None:
    updated, local = edited(origin, upstream), edited(origin, here)
    prepended = [{**function, "name": f"PackageVariant.site.{at}.{at}"} for at, function in enumerate(own)]
    mutators = local["pipeline"]["mutators"]
    with_own = {**local, "pipeline": {**local["pipeline"], "mutators": prepended + mutators}}

    plain, conflicts = merge_kptfile(kptfile(origin), kptfile(updated), kptfile(local), OPTIONS[winner])
    merged, also = merge_kptfile(kptfile(origin), kptfile(updated), kptfile(with_own), OPTIONS[winner])

    functions = (merged.data.get("pipeline") or {}).get("mutators") or []
    assert functions[: len(own)] == prepended
    assert functions[len(own) :] == ((plain.data.get("pipeline") or {}).get("mutators") or [])
    assert len(conflicts) == len(also)


@pytest.mark.skipif(not KPTFILES, reason="the data of other projects is not available")
def test_real_kptfiles_merged_with_themselves_keep_their_bytes() -> None:
    read = [it for it in (read_kptfile(path.read_bytes()) for path in KPTFILES) if isinstance(it, Kptfile)]
    changed = [it.name for it in read for winner in OPTIONS if merge_kptfile(it, it, it, OPTIONS[winner]) != (it, ())]

    assert len(read) > 50
    assert changed == []


@pytest.mark.slow
@pytest.mark.skipif(not KPTFILES, reason="the data of other projects is not available")
def test_what_a_variant_and_upstream_add_to_a_real_kptfile_is_all_that_changes() -> None:
    own, new = {"name": "PackageVariant.p.f.0", "image": "own:v1"}, {"image": "new:v1"}
    checked = 0
    for origin in (it for it in (read_kptfile(path.read_bytes()) for path in KPTFILES) if isinstance(it, Kptfile)):
        pipeline = origin.data.get("pipeline") or {}
        mutators, validators = (pipeline.get(stage) or [] for stage in ("mutators", "validators"))
        updated, local = (origin.with_pipeline(it, validators) for it in ([*mutators, new], [own, *mutators]))
        merged, conflicts = merge_kptfile(origin, updated, local, OPTIONS["upstream"])

        assert merged.to_bytes() == origin.with_pipeline([own, *mutators, new], validators).to_bytes()
        assert conflicts == ()
        checked += 1
    assert checked > 50


@pytest.mark.skipif(not KPTFILES, reason="the data of other projects is not available")
@pytest.mark.parametrize("whole", [False, True])
def test_any_three_real_kptfiles_merge(whole: bool) -> None:
    read = [it for it in (read_kptfile(path.read_bytes()) for path in KPTFILES) if isinstance(it, Kptfile)]
    for at, local in enumerate(read):
        origin, updated = read[at * 7 % len(read)], read[at * 11 % len(read)]
        merged, _ = merge_kptfile(origin, updated, local, OPTIONS["upstream"], whole=whole)

        assert isinstance(read_kptfile(merged.to_bytes()), Kptfile)
        assert merge_kptfile(updated, updated, merged, OPTIONS["upstream"], whole=whole) == (merged, ())
