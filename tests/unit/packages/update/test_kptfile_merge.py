"""Merging Kptfiles: what each side changed arrives, nothing else moves, and what both changed is told."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent, indent

import pytest

from reconciler.krm.conflicts import Conflict
from reconciler.krm.merge3 import SAFE
from reconciler.packages.kptfile import Kptfile, read_kptfile
from reconciler.packages.update.kptfile_merge import merge_kptfile
from reconciler.packages.update.options import MergeOptions

HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n"
OPTIONS = MergeOptions()
LOCAL_WINS = MergeOptions(rules=replace(SAFE, winner="local"))


def read(text: str) -> Kptfile:
    kptfile = read_kptfile(text.encode())
    assert isinstance(kptfile, Kptfile), kptfile
    return kptfile


def kptfile(body: str) -> Kptfile:
    return read(HEAD + dedent(body).lstrip("\n"))


def pipeline(mutators: str) -> Kptfile:
    return kptfile(f"pipeline:\n  mutators:\n{indent(dedent(mutators).strip(), '  ')}\n") if mutators else kptfile("")


def text_of(merged: Kptfile) -> str:
    return merged.to_bytes().decode()


def briefly(conflicts: tuple[Conflict, ...]) -> list[tuple[str, str, str]]:
    return [(conflict.pointer, conflict.rule, conflict.chosen) for conflict in conflicts]


SPEC_ORIGIN = """
- image: set-namespace:v0.4.1
  configMap: {namespace: demo}
- image: apply-setters:v0.2.0
"""
SPEC_UPDATED = """
- image: set-namespace:v0.4.5
  configMap: {namespace: demo}
- image: apply-setters:v0.2.0
"""
SPEC_LOCAL = """
- image: set-namespace:v0.4.1
  configMap: {namespace: site-a}
- image: set-labels:v0.2.0
  configMap: {site: a}
- image: apply-setters:v0.2.0
"""
SPEC_MERGED = SPEC_LOCAL.replace("v0.4.1", "v0.4.5")
OF_A_VARIANT = """
- image: note:v1
  name: PackageVariant.site-a.note.0
"""
OTHERS = OF_A_VARIANT.replace("site-a", "other")
OTHERS_NEXT = OTHERS.replace("v1", "v2")


@pytest.mark.parametrize(
    ("updated", "local", "merged"),
    [
        pytest.param(SPEC_UPDATED, SPEC_LOCAL, SPEC_MERGED, id="kpt-10.3"),
        pytest.param(SPEC_UPDATED, OF_A_VARIANT + SPEC_LOCAL, OF_A_VARIANT + SPEC_MERGED, id="a-variants-function"),
        pytest.param(SPEC_ORIGIN, SPEC_LOCAL + OF_A_VARIANT, SPEC_LOCAL + OF_A_VARIANT, id="upstream-unchanged"),
        pytest.param(SPEC_UPDATED, SPEC_LOCAL + OF_A_VARIANT, OF_A_VARIANT + SPEC_MERGED, id="a-variants-comes-first"),
        pytest.param(
            SPEC_UPDATED,
            SPEC_LOCAL.replace("- image: set-labels", "- name: mine\n  image: set-labels"),
            SPEC_MERGED.replace("- image: set-labels", "- name: mine\n  image: set-labels"),
            id="a-named-function",
        ),
        pytest.param(
            SPEC_UPDATED,
            SPEC_LOCAL.replace("- image: apply-setters:", "- image: apply-setters:v1\n- image: apply-setters:"),
            SPEC_MERGED.replace("- image: apply-setters:", "- image: apply-setters:v1\n- image: apply-setters:"),
            id="the-same-image-twice",
        ),
        pytest.param("", OF_A_VARIANT + SPEC_ORIGIN, OF_A_VARIANT, id="only-a-variants-functions-remain"),
    ],
)
def test_the_worked_example(updated: str, local: str, merged: str) -> None:
    result, conflicts = merge_kptfile(pipeline(SPEC_ORIGIN), pipeline(updated), pipeline(local), OPTIONS)

    assert result.data == pipeline(merged).data
    assert conflicts == ()


A, B, C = "- image: a:v1\n", "- image: b:v1\n", "- image: c:v1\n"
X, Y = "- image: x:v1\n", "- image: y:v1\n"


@pytest.mark.parametrize(
    ("origin", "updated", "local", "merged"),
    [
        pytest.param(A + B, A + B + C, A + X + B, A + X + B + C, id="added-on-both-sides"),
        pytest.param(A + B, A + C + B, A + X + B, A + C + X + B, id="behind-its-upstream-predecessor"),
        pytest.param(A + B, C + A + B, X + A + B, X + C + A + B, id="upstream-puts-one-first"),
        pytest.param(A + B, B, A + X + B, X + B, id="removed-upstream"),
        pytest.param(A + B, A + B + C, B, B + C, id="removed-locally"),
        pytest.param(A + B, B + A, A + B + X, B + X + A, id="moved-upstream"),
        pytest.param(A + B, A + B + C, B + A, B + C + A, id="moved-locally"),
        pytest.param("", A + B, X, X + A + B, id="no-list-before"),
        pytest.param(A, "", A + X, X, id="no-list-upstream"),
        pytest.param(A, "", A, "", id="the-list-goes-with-its-last-function"),
        pytest.param("", A, A, A, id="both-added-the-same"),
    ],
)
def test_functions_come_and_go(origin: str, updated: str, local: str, merged: str) -> None:
    result, _ = merge_kptfile(pipeline(origin), pipeline(updated), pipeline(local), OPTIONS)

    assert result.data == pipeline(merged).data


def entry(config: str, rest: str = "") -> str:
    return f"- image: a:v1\n  configMap: {{{config}}}\n{rest}"


@pytest.mark.parametrize(
    ("origin", "updated", "local", "merged", "conflicts"),
    [
        pytest.param(
            entry("x: p, y: q"), entry("x: p2, y: q"), entry("x: p, y: q2, z: r"), entry("x: p2, y: q2, z: r"), [],
            id="config-by-field",
        ),
        pytest.param(
            entry("x: p"), entry("x: u"), entry("x: l"), entry("x: u"),
            [("/pipeline/mutators/0/configMap/x", "D2", "upstream")],
            id="both-changed-a-field",
        ),
        pytest.param(
            entry("x: p"), entry("x: u"), OF_A_VARIANT + B + entry("x: l"), OF_A_VARIANT + B + entry("x: u"),
            [("/pipeline/mutators/2/configMap/x", "D2", "upstream")],
            id="a-pointer-counts-all-functions",
        ),
        pytest.param(
            entry("x: p") + B, B, entry("x: l") + B, entry("x: l") + B,
            [("/pipeline/mutators/0", "D3", "local")],
            id="edited-here-removed-upstream",
        ),
        pytest.param(
            B + entry("x: p"), B + entry("x: u"), B, B,
            [("/pipeline/mutators/1", "D4", "local")],
            id="removed-here-edited-upstream",
        ),
        pytest.param(A, "", A + X, X, [("/pipeline/mutators", "D5", "local")], id="list-removed-upstream"),
        pytest.param(
            A + B + C, C + B + A, B + A + C, B + A + C,
            [("/pipeline/mutators", "D23", "local")],
            id="moved-on-both-sides",
        ),
        pytest.param(
            "- image: a\n  configPath: p\n", "- image: a\n  configPath: q\n", entry("x: l"),
            "- image: a:v1\n  configPath: q\n",
            [
                ("/pipeline/mutators/0/configPath", "D2", "upstream"),
                ("/pipeline/mutators/0/configMap", "D23", "upstream"),
            ],
            id="one-configuration-only",
        ),
        pytest.param(
            "- {name: n, image: a}\n", "- {name: n, image: b}\n", "- {name: n, exec: e}\n", "- {name: n, image: b}\n",
            [("/pipeline/mutators/0/image", "D2", "upstream"), ("/pipeline/mutators/0/exec", "D23", "upstream")],
            id="one-thing-to-run",
        ),
        pytest.param(
            "- {name: n, image: a}\n", "- {name: n, configMap: {x: y}}\n", "- {name: n, image: a, tag: '1'}\n", "",
            [("/pipeline/mutators/0", "D23", "upstream")],
            id="nothing-to-run",
        ),
        pytest.param(
            OTHERS + A, A, OTHERS_NEXT + A,
            A,
            [("/pipeline/mutators/0", "D23", "upstream")],
            id="a-variants-function-that-upstream-had",
        ),
        pytest.param(
            OTHERS + A, OTHERS_NEXT + A,
            OF_A_VARIANT + OTHERS + A,
            OF_A_VARIANT + OTHERS_NEXT + A,
            [],
            id="a-chain-of-variants",
        ),
    ],
)  # fmt: skip
def test_what_both_sides_changed(
    origin: str, updated: str, local: str, merged: str, conflicts: list[tuple[str, str, str]]
) -> None:
    result, found = merge_kptfile(pipeline(origin), pipeline(updated), pipeline(local), OPTIONS)

    assert result.data == pipeline(merged).data
    assert briefly(found) == conflicts
    again, none = merge_kptfile(pipeline(updated), pipeline(updated), result, OPTIONS)
    assert (again, none) == (result, ())
