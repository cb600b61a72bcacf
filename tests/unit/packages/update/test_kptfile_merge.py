"""Tests of merged Kptfiles: changes of both sides are kept, other text stays, and conflicts are reported."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent, indent
from typing import Any

import pytest

from reconciler.krm.merge3 import SAFE, MergeError
from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.packages.kptfile import Kptfile, read_kptfile
from reconciler.packages.update.kptfile_merge import merge_kptfile
from reconciler.packages.update.options import MergeOptions, create_compat_options

HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n"
OPTIONS = MergeOptions()
LOCAL_WINS = MergeOptions(rules=replace(SAFE, winner="local"))


def parse_kptfile(text: str) -> Kptfile:
    kptfile = read_kptfile(text.encode())
    assert isinstance(kptfile, Kptfile), kptfile
    return kptfile


def build_kptfile(body: str) -> Kptfile:
    return parse_kptfile(HEAD + dedent(body).lstrip("\n"))


def build_pipeline(mutators: str) -> Kptfile:
    return (
        build_kptfile(f"pipeline:\n  mutators:\n{indent(dedent(mutators).strip(), '  ')}\n")
        if mutators
        else build_kptfile("")
    )


def get_text(merged: Kptfile) -> str:
    return merged.to_bytes().decode()


def summarize_conflicts(conflicts: tuple[Conflict, ...]) -> list[tuple[str, str, str]]:
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
def test_worked_example(updated: str, local: str, merged: str) -> None:
    result, conflicts = merge_kptfile(
        build_pipeline(SPEC_ORIGIN), build_pipeline(updated), build_pipeline(local), OPTIONS
    )

    assert result.data == build_pipeline(merged).data
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
def test_functions_are_added_and_removed(origin: str, updated: str, local: str, merged: str) -> None:
    result, _ = merge_kptfile(build_pipeline(origin), build_pipeline(updated), build_pipeline(local), OPTIONS)

    assert result.data == build_pipeline(merged).data


def format_entry(config: str, rest: str = "") -> str:
    return f"- image: a:v1\n  configMap: {{{config}}}\n{rest}"


@pytest.mark.parametrize(
    ("origin", "updated", "local", "merged", "conflicts"),
    [
        pytest.param(
            format_entry("x: p, y: q"), format_entry("x: p2, y: q"), format_entry("x: p, y: q2, z: r"), format_entry("x: p2, y: q2, z: r"), [],
            id="config-by-field",
        ),
        pytest.param(
            format_entry("x: p"), format_entry("x: u"), format_entry("x: l"), format_entry("x: u"),
            [("/pipeline/mutators/0/configMap/x", "D2", "upstream")],
            id="both-changed-a-field",
        ),
        pytest.param(
            format_entry("x: p"), format_entry("x: u"), OF_A_VARIANT + B + format_entry("x: l"), OF_A_VARIANT + B + format_entry("x: u"),
            [("/pipeline/mutators/2/configMap/x", "D2", "upstream")],
            id="a-pointer-counts-all-functions",
        ),
        pytest.param(
            format_entry("x: p") + B, B, format_entry("x: l") + B, format_entry("x: l") + B,
            [("/pipeline/mutators/0", "D3", "local")],
            id="edited-here-removed-upstream",
        ),
        pytest.param(
            B + format_entry("x: p"), B + format_entry("x: u"), B, B,
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
            "- image: a\n  configPath: p\n", "- image: a\n  configPath: q\n", format_entry("x: l"),
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
def test_changes_of_both_sides(
    origin: str, updated: str, local: str, merged: str, conflicts: list[tuple[str, str, str]]
) -> None:
    result, actual_conflicts = merge_kptfile(
        build_pipeline(origin), build_pipeline(updated), build_pipeline(local), OPTIONS
    )

    assert result.data == build_pipeline(merged).data
    assert summarize_conflicts(actual_conflicts) == conflicts
    second_kptfile, none = merge_kptfile(build_pipeline(updated), build_pipeline(updated), result, OPTIONS)
    assert (second_kptfile, none) == (result, ())


@pytest.mark.parametrize(
    ("origin", "updated", "local", "merged"),
    [
        pytest.param("", "[{kind: A}]", "[{kind: B}]", "[{kind: A}]", id="narrowed-on-both-sides"),
        pytest.param("[{kind: A}]", "[{kind: A}, {kind: B}]", "[{kind: A}, {kind: C}]",
                     "[{kind: A}, {kind: C}, {kind: B}]", id="added-on-both-sides"),
        pytest.param("[{kind: A}, {kind: B}]", "[{kind: A, name: x}, {kind: B}]", "[{kind: A}, {kind: B, name: y}]",
                     "[{kind: B, name: y}, {kind: A, name: x}]", id="different-ones-edited"),
        pytest.param("[{kind: A}]", "[{kind: A, name: x}]", "[{kind: A, name: y}]", "[{kind: A, name: x}]",
                     id="the-same-one-edited"),
        pytest.param("[{kind: A}, {kind: B}]", "[{kind: A}]", "[{kind: B}]", "[{kind: A}]", id="never-all-by-accident"),
        pytest.param("[{kind: A}]", "[{kind: A}, {kind: B}]", "", "[{kind: A}, {kind: B}]", id="all-against-more"),
    ],
)  # fmt: skip
def test_selectors(origin: str, updated: str, local: str, merged: str) -> None:
    def build_with_selectors(selectors: str, value: str) -> Kptfile:
        return build_pipeline(format_entry(f"x: {value}", f"  selectors: {selectors}\n" if selectors else ""))

    result, conflicts = merge_kptfile(
        build_with_selectors(origin, "1"), build_with_selectors(updated, "2"), build_with_selectors(local, "1"), OPTIONS
    )

    assert result.data == build_with_selectors(merged, "2").data
    assert bool(conflicts) == (merged in (updated, local))


def test_added_exclusions_of_both_sides_are_combined() -> None:
    def build_with_exclusions(kinds: str, value: str) -> Kptfile:
        return build_pipeline(format_entry(f"x: {value}", f"  exclude: {kinds}\n" if kinds else ""))

    result, conflicts = merge_kptfile(
        build_with_exclusions("", "1"),
        build_with_exclusions("[{kind: A}]", "2"),
        build_with_exclusions("[{kind: B}]", "1"),
        OPTIONS,
    )

    assert result.data == build_with_exclusions("[{kind: B}, {kind: A}]", "2").data
    assert conflicts == ()


@pytest.mark.parametrize(
    ("origin", "updated", "local", "merged", "conflicts"),
    [
        pytest.param(
            "info: {readinessGates: [{conditionType: a}, {conditionType: b}]}",
            "info: {readinessGates: [{conditionType: a}, {conditionType: c}]}",
            "info: {readinessGates: [{conditionType: x}, {conditionType: a}, {conditionType: b}]}",
            "info: {readinessGates: [{conditionType: x}, {conditionType: a}, {conditionType: c}]}",
            [],
            id="gates-by-condition-type",
        ),
        pytest.param(
            "status: {conditions: [{type: A, status: 'True', reason: r}]}",
            "status: {conditions: [{type: A, status: 'False', reason: r}, {type: C, status: 'True'}]}",
            "status: {conditions: [{type: A, status: 'True', reason: mine}, {type: B, status: 'True'}]}",
            "status: {conditions: [{type: A, status: 'False', reason: mine}, {type: B, status: 'True'},"
            " {type: C, status: 'True'}]}",
            [],
            id="conditions-by-type",
        ),
        pytest.param(
            "info: {emails: [a, b], keywords: [k]}",
            "info: {emails: [a, c], keywords: [k, l]}",
            "info: {emails: [a, b, x], keywords: []}",
            "info: {emails: [a, x, c], keywords: [l]}",
            [],
            id="emails-and-keywords-are-sets",
        ),
        pytest.param(
            "info: {description: o}", "info: {description: u}", "info: {description: l}", "info: {description: u}",
            [("/info/description", "D2", "upstream")],
            id="both-changed",
        ),
        pytest.param(
            "info: {site: s}", "", "info: {site: s}", "", [], id="what-upstream-took-away",
        ),
        pytest.param(
            "own: {a: 1}\npipeline: {n: x}", "own: {a: 2}\npipeline: {n: y}", "own: {a: 1, b: 2}\npipeline: {n: x}",
            "own: {a: 2, b: 2}\npipeline: {n: y}", [],
            id="unknown-fields",
        ),
        pytest.param(
            "inventory: {name: n}", "inventory: {name: n, labels: {u: '1'}}", "inventory: {name: n, labels: {l: '1'}}",
            "inventory: {name: n, labels: {l: '1', u: '1'}}", [],
            id="inventory",
        ),
        pytest.param(
            "status: {renderStatus: {mutationSteps: [{name: a}]}}",
            "status: {renderStatus: {mutationSteps: [{name: b}]}}",
            "status: {renderStatus: {mutationSteps: [{name: c}]}}",
            "status: {renderStatus: {mutationSteps: [{name: b}]}}",
            [("/status/renderStatus", "D2", "upstream")],
            id="a-report-is-one-sides",
        ),
    ],
)  # fmt: skip
def test_other_sections(
    origin: str, updated: str, local: str, merged: str, conflicts: list[tuple[str, str, str]]
) -> None:
    result, actual_conflicts = merge_kptfile(
        build_kptfile(origin), build_kptfile(updated), build_kptfile(local), OPTIONS
    )

    assert result.data == build_kptfile(merged).data
    assert summarize_conflicts(actual_conflicts) == conflicts


def test_labels_and_annotations() -> None:
    def build_with_labels(labels: str) -> Kptfile:
        return parse_kptfile(f"{HEAD}  labels: {{{labels}}}\n  annotations: {{{labels}}}\n")

    result, conflicts = merge_kptfile(
        build_with_labels("a: o, b: o"), build_with_labels("a: u, b: o"), build_with_labels("a: o, b: l, c: l"), OPTIONS
    )

    assert result.data == build_with_labels("a: u, b: l, c: l").data
    assert conflicts == ()


UPSTREAM = """
upstream:
  type: git
  git: {{repo: r, directory: {0}, ref: {0}}}
  updateStrategy: {1}
upstreamLock:
  type: git
  git: {{repo: r, directory: {0}, ref: {0}, commit: c{0}}}
"""


def build_with_upstream(name: str, place: str, strategy: str = "resource-merge") -> Kptfile:
    return parse_kptfile(HEAD.replace("app", name) + UPSTREAM.format(place, strategy).lstrip("\n"))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param({}, build_with_upstream("l", "l"), id="local-stays"),
        pytest.param({"take_upstream": True}, build_with_upstream("l", "u", "fast-forward"), id="taken"),
        pytest.param({"whole": True}, build_with_upstream("u", "u", "fast-forward"), id="merged"),
    ],
)
def test_name_and_upstream(flags: dict[str, bool], expected: Kptfile) -> None:
    result, _ = merge_kptfile(
        build_with_upstream("o", "o"),
        build_with_upstream("u", "u", "fast-forward"),
        build_with_upstream("l", "l"),
        OPTIONS,
        **flags,
    )

    assert result.data == expected.data


def test_complete_merge_keeps_upstream_sections_consistent_and_reports_conflicts() -> None:
    _, conflicts = merge_kptfile(
        build_with_upstream("o", "o"), build_with_upstream("u", "u"), build_with_upstream("l", "l"), OPTIONS, whole=True
    )

    assert summarize_conflicts(conflicts) == [
        ("/metadata/name", "D2", "upstream"),
        ("/upstream/git", "D2", "upstream"),
        ("/upstreamLock", "D2", "upstream"),
    ]


@pytest.mark.parametrize(
    "options", [pytest.param(OPTIONS, id="safe"), pytest.param(create_compat_options(), id="compat")]
)
@pytest.mark.parametrize("whole", [True, False])
def test_missing_kptfile_changes_nothing(options: MergeOptions, whole: bool) -> None:
    local = build_pipeline(A)

    added, _ = merge_kptfile(None, build_pipeline(B), local, options, whole=whole)
    removed, _ = merge_kptfile(build_pipeline(A), None, local, options, whole=whole)

    assert added.pipeline.mutators == build_pipeline(A + B).pipeline.mutators
    assert (removed.name, removed.pipeline.mutators) == ("app", ())


def test_upstream_is_taken_only_if_present() -> None:
    local = build_with_upstream("l", "l")

    assert merge_kptfile(None, build_kptfile(""), local, OPTIONS, take_upstream=True) == (local, ())
    assert merge_kptfile(None, None, local, OPTIONS, take_upstream=True) == (local, ())


@pytest.mark.parametrize(
    ("side", "options"),
    [pytest.param("u", OPTIONS, id="upstream-wins"), pytest.param("l", LOCAL_WINS, id="local-wins")],
)
def test_winner_of_fields_that_both_sides_changed(side: str, options: MergeOptions) -> None:
    def build_side(who: str) -> Kptfile:
        parts = (
            f"info: {{site: {who}}}",
            f"status: {{renderStatus: {who}}}",
            f"pipeline: {{mutators: [{{image: {who}/a}}]}}",
        )
        return build_kptfile("\n".join(parts))

    result, conflicts = merge_kptfile(build_side("o"), build_side("u"), build_side("l"), options)

    assert result.data == build_side(side).data
    assert {(conflict.base is ABSENT, conflict.chosen) for conflict in conflicts} == {(False, options.rules.winner)}
    assert len(conflicts) == 3


@pytest.mark.parametrize(
    ("rules", "updated", "local", "merged"),
    [
        pytest.param({"keeps_edited_elements": False}, B, format_entry("x: l") + B, B, id="D3"),
        pytest.param({"keeps_removals": False}, format_entry("x: u") + B, B, B, id="D4"),
        pytest.param({"keeps_local_elements": False}, "", OF_A_VARIANT + A + B + X, OF_A_VARIANT, id="D5"),
    ],
)
def test_merge_options(rules: dict[str, Any], updated: str, local: str, merged: str) -> None:
    options = MergeOptions(rules=replace(SAFE, **rules))
    result, _ = merge_kptfile(build_pipeline(A + B), build_pipeline(updated), build_pipeline(local), options)

    assert result.data == build_pipeline(merged).data


@pytest.mark.parametrize(
    ("origin", "updated", "local", "merged"),
    [
        pytest.param(SPEC_ORIGIN, SPEC_UPDATED, SPEC_LOCAL, SPEC_MERGED, id="worked-example"),
        pytest.param(A + B, A + B + C, A + X + B, A + X + B + C, id="new-functions-come-last"),
        pytest.param(A + B, C + A + B, A + X + B, A + X + B + C, id="wherever-upstream-has-them"),
        pytest.param(format_entry("x: p"), B, format_entry("x: p, y: q"), "- configMap: {y: q}\n" + B, id="a-stub"),
        pytest.param(format_entry("x: p"), B, format_entry("x: p"), "- {}\n" + B, id="a-stub-of-nothing"),
        pytest.param(A + A, A + A + B, A + A + X, A + A + B, id="one-image-twice"),
        pytest.param(
            "- image: r.io:5000/a\n- image: r.io:5000/b\n", B, X, B, id="a-port-makes-images-one"
        ),
        pytest.param("- exec: a:1\n", "- exec: a:1\n- exec: a:2\n", "- exec: a:1\n- image: x\n",
                     "- exec: a:1\n- image: x\n- exec: a:2\n", id="commands-by-their-text"),
    ],
)  # fmt: skip
def test_compat(origin: str, updated: str, local: str, merged: str) -> None:
    result, _ = merge_kptfile(
        build_pipeline(origin), build_pipeline(updated), build_pipeline(local), create_compat_options()
    )

    assert result.data == build_pipeline(merged).data


@pytest.mark.parametrize(
    ("updated", "local", "merged"),
    [
        pytest.param(SPEC_UPDATED, OF_A_VARIANT + SPEC_LOCAL, SPEC_UPDATED, id="one-name-costs-everything"),
        pytest.param(SPEC_ORIGIN, OF_A_VARIANT + SPEC_LOCAL, OF_A_VARIANT + SPEC_LOCAL, id="unless-upstream-rests"),
    ],
)
def test_compat_with_named_functions(updated: str, local: str, merged: str) -> None:
    result, _ = merge_kptfile(
        build_pipeline(SPEC_ORIGIN), build_pipeline(updated), build_pipeline(local), create_compat_options()
    )

    assert result.data == build_pipeline(merged).data


def test_compat_fails_if_only_one_side_has_names() -> None:
    with pytest.raises(MergeError, match="conflicting merge keys"):
        merge_kptfile(build_pipeline(A), build_pipeline(A + B), build_pipeline(OF_A_VARIANT), create_compat_options())


@pytest.mark.parametrize("local", ["", "pipeline: {}\n"])
def test_compat_writes_no_empty_list(local: str) -> None:
    result, _ = merge_kptfile(build_pipeline(A), build_pipeline(A), build_kptfile(local), create_compat_options())

    assert result.data["pipeline"] == {}


def test_compat_omits_empty_fields() -> None:
    body = "info: {site: '', emails: []}\npipeline:\n  mutators: [{image: a, configMap: {x: , n: 1}, selectors: []}]\n"
    result, _ = merge_kptfile(build_kptfile(body), build_kptfile(body), build_kptfile(body), create_compat_options())

    assert result.data["info"] == {}
    assert result.data["pipeline"] == {"mutators": [{"image": "a", "configMap": {"x": "", "n": "1"}}]}


def test_other_text_is_unchanged() -> None:
    local = """\
    # licence
    apiVersion: kpt.dev/v1
    kind: Kptfile
    metadata:
      name: mine # ours

      annotations: {"owner":   "team a"}
    pipeline:
      # first of all
      mutators:
        - image: set-namespace:v0.4.1 # pinned
          configMap: {namespace: site-a}
        # ours
        - image: 'set-labels:v0.2.0'
        - image: apply-setters:v0.2.0 # last
    """
    updated = SPEC_UPDATED + "- image: gate:v1\n"
    result, _ = merge_kptfile(
        build_pipeline(SPEC_ORIGIN), build_pipeline(updated), parse_kptfile(dedent(local)), OPTIONS
    )

    expected = dedent(local).replace("v0.4.1", "v0.4.5") + "    - image: gate:v1\n"
    assert get_text(result) == expected


def test_unchanged_kptfile_receives_the_text_of_upstream() -> None:
    origin, updated = (
        build_pipeline(SPEC_ORIGIN),
        parse_kptfile(HEAD + "# new\npipeline: {mutators: [{image:   a}]} # and this\n"),
    )

    assert merge_kptfile(origin, updated, build_pipeline(SPEC_ORIGIN), OPTIONS)[0].to_bytes() == updated.to_bytes()


@pytest.mark.parametrize("body", ["pipeline:", "pipeline: {}", "pipeline: {mutators: []}", "pipeline: {mutators: }"])
def test_empty_and_null_values_stay_without_a_change(body: str) -> None:
    local = build_kptfile(body)

    assert merge_kptfile(build_kptfile("info: {site: a}"), build_kptfile("info: {site: a}"), local, OPTIONS)[0] is local
    changed, _ = merge_kptfile(build_kptfile(""), build_pipeline(A), local, OPTIONS)
    assert [function.image for function in changed.pipeline.mutators] == ["a:v1"]


def test_comments_stay_with_their_functions_and_fields() -> None:
    origin = """\
      - image: a:v1
      - image: b:v1 # old
      # about c
      - image: c:v1
        configMap: {x: p}
    """
    updated = """\
      - image: a:v2 # two
      # new here
      - image: gate:v1 # why
        configMap:
          # the key
          key: value
      - image: b:v1 # new
      # more about c
      - image: c:v1
        configMap: {x: p, z: q}
    """
    local = """\
      - image: note:v1
        name: PackageVariant.site.note.0
      - image: a:v1
        configMap: {site: x} # ours
      - image: own:v1 # ours
      - image: b:v1 # old
      # about c
      - image: c:v1
        configMap: {x: l} # and ours
    """
    expected = """\
      - image: note:v1
        name: PackageVariant.site.note.0
      - image: a:v2 # two
        configMap: {site: x} # ours
      # new here
      - image: gate:v1 # why
        configMap:
          # the key
          key: value
      - image: own:v1 # ours
      - image: b:v1 # new
      # more about c
      - image: c:v1
        configMap: {x: l, z: q} # and ours
    """
    result, conflicts = merge_kptfile(build_pipeline(origin), build_pipeline(updated), build_pipeline(local), OPTIONS)

    assert get_text(result) == get_text(build_pipeline(expected))
    assert conflicts == ()


def test_changed_comment_of_upstream_is_merged() -> None:
    result, _ = merge_kptfile(
        build_kptfile("info: {site: a} # old"),
        build_kptfile("info: {site: a} # new"),
        build_kptfile("info: {site: b} # old"),
        OPTIONS,
    )

    assert get_text(result) == get_text(build_kptfile("info: {site: b} # new"))


def test_comments_stay_with_functions_that_are_similar_to_others() -> None:
    origin = format_entry("by: a, put: 1") + format_entry("by: b, put: 2")
    local = (
        format_entry("by: a, put: l") + format_entry("by: new, put: n") + "# second\n" + format_entry("by: b, put: l")
    )
    updated = origin.replace("v1", "v2")
    result, _ = merge_kptfile(build_pipeline(origin), build_pipeline(updated), build_pipeline(local), OPTIONS)

    expected = local.replace("v1", "v2").replace("a:v2\n  configMap: {by: new", "a:v1\n  configMap: {by: new")
    assert get_text(result) == get_text(build_pipeline(expected))


def test_new_sections_have_the_standard_order() -> None:
    updated = parse_kptfile(HEAD + "info: # about it\n  site: s\n" + "status:\n  conditions: []\n")
    result, _ = merge_kptfile(build_kptfile(""), updated, build_pipeline(A), OPTIONS)

    assert get_text(result) == get_text(build_pipeline(A)).replace(
        "pipeline", "info: # about it\n  site: s\npipeline"
    ) + ("status:\n  conditions: []\n")
