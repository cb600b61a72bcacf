from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.catalog.files import CommitId, FileTree
from reconciler.controllers.placement.model import build_placement_owner
from reconciler.controllers.results import GeneratedSource, PackageTarget
from reconciler.krm.json_text import compute_digest
from reconciler.krm.objects import Condition
from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.commit_messages import (
    DryCommit,
    format_draft_message,
    format_removal_message,
    format_state_message,
    format_status_message,
)
from reconciler.planning.model.outcomes import Draft, PackageRender
from tests.unit.output.builders import (
    COMMIT,
    CONFIG,
    OLD_COMMIT,
    TREE,
    build_draft,
    build_owner,
    build_removal,
    build_target,
    build_tree,
    build_upstream,
    build_variant,
    format_deployment,
    format_endpoints,
    format_kptfile,
)

OLD = {"Kptfile": format_kptfile("v3", OLD_COMMIT), "a.yaml": format_deployment(3), "b.yaml": format_endpoints("a")}
NEW = {
    "Kptfile": format_kptfile("v4", COMMIT),
    "a.yaml": format_deployment(5),
    "b.yaml": format_endpoints("b"),
    "README.md": "x",
}
REGION = "object x.io/v1 Region default eu-west"
POLICY = "policy core.kubeadmiral.io/v1alpha1 OverridePolicy shop web eu-1"
ROLLOUT = "rollout ClusterOverridePolicy/_cluster/edge#mirror eu-1"


def format_message(new_draft: Draft) -> str:
    return format_draft_message(
        new_draft, build_target(), CONFIG, compare_packages(new_draft.previous_files, new_draft.rendered.files)
    )


def test_update_lists_changes_then_causes_then_trailers() -> None:
    rendered = PackageRender(
        FileTree(),
        conditions=(Condition("Rendered", "False", "FunctionFailed", "starlark:v0.5 in .: no such\nfield"),),
        readiness_gates=("config.injection.Site.here", "Rendered"),
    )
    new_draft = build_draft(OLD, NEW, causes=("upstream", REGION), trace={REGION: "sha256:5"}, rendered=rendered)

    assert format_message(new_draft) == (
        "gw v3 → v4: replicas, api\n"
        "\n"
        "Changed:\n"
        "- Deployment web: replicas 3 → 5\n"
        "- ConfigMap endpoints: data.api a → b\n"
        "\n"
        "Files:\n"
        f"- Kptfile: upstream gateway@v3 ({OLD_COMMIT[:7]}) → gateway@v4 ({COMMIT[:7]})\n"
        "- README.md: added\n"
        "\n"
        "Why:\n"
        "- upstream catalog/gateway: v3 → v4\n"
        "- Region default/eu-west changed\n"
        "\n"
        "Unmet readiness gates:\n"
        "- Rendered is False: starlark:v0.5 in .: no such⏎field\n"
        "- config.injection.Site.here is not reported\n"
        "\n"
        "Reconciler-Owner: PackageVariant default/edge-gw\n"
        "Reconciler-Task: update\n"
        "Reconciler-Repository: eu-1\n"
        "Reconciler-Package: gw\n"
        f"Reconciler-Upstream: catalog/gateway gateway/v4 {COMMIT}\n"
        f"Reconciler-Config-Commit: {CONFIG}\n"
        f"Reconciler-Inputs: {compute_digest({REGION: 'sha256:5'})}\n"
    )


VERSION_LABEL = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  labels:\n    helm.sh/chart: a-{}\n"
LONG_KEY = f"{format_endpoints('b')}  {'k' * 80}: x\n"


@pytest.mark.parametrize(
    ("new_draft", "expected"),
    [
        pytest.param(build_draft({}, NEW, task="clone"), "install gw v4", id="a-new-package"),
        pytest.param(build_draft(OLD, NEW, task="adopt", causes=("variant",)), "adopt gw v3 → v4", id="an-adoption"),
        pytest.param(build_draft(OLD, NEW, task="upgrade"), "gw v3 → v4: replicas, api", id="an-upgrade"),
        pytest.param(
            build_draft(OLD, {**NEW, "b.yaml": LONG_KEY}),
            "gw v3 → v4: replicas, api (+1 more)",
            id="more-than-two-names",
        ),
        pytest.param(
            build_draft({**OLD, "A.yaml": VERSION_LABEL.format(1)}, {**NEW, "A.yaml": VERSION_LABEL.format(2)}),
            "gw v3 → v4: replicas, api (+1 more)",
            id="version-labels-are-last",
        ),
        pytest.param(
            build_draft({"a.yaml": VERSION_LABEL.format(1)}, {"a.yaml": VERSION_LABEL.format(2)}, causes=("engine",)),
            "re-render gw: labels",
            id="only-version-labels",
        ),
        pytest.param(
            build_draft(OLD, {name: text for name, text in NEW.items() if name != "b.yaml"}),
            "gw v3 → v4: ConfigMap removed, replicas",
            id="a-removed-object",
        ),
        pytest.param(
            build_draft(OLD, {**OLD, "Kptfile": NEW["Kptfile"]}), "gw v3 → v4: Kptfile", id="the-version-alone"
        ),
        pytest.param(
            build_draft({**OLD, "Kptfile": format_kptfile("v4", OLD_COMMIT)}, NEW),
            f"gw v4 moved to {COMMIT[:7]}: replicas, api",
            id="a-tag-that-was-moved",
        ),
        pytest.param(
            build_draft({**OLD, "Kptfile": format_kptfile("v5")}, NEW, causes=("upstream", "downgrade")),
            "gw downgrade v5 → v4: replicas, api",
            id="a-downgrade",
        ),
        pytest.param(
            build_draft(
                {**OLD, "Kptfile": format_kptfile("v3").replace("directory: gateway", "directory: edge/gateway")}, NEW
            ),
            "gw edge/gateway gateway/v3 → gateway v4: replicas, api",
            id="another-package",
        ),
        pytest.param(
            build_draft({**OLD, "Kptfile": format_kptfile("v3").replace("catalog.git", "catalog")}, NEW),
            "gw v3 → v4: replicas, api",
            id="the-same-repository-with-another-spelling",
        ),
        pytest.param(
            build_draft(OLD, NEW, task="edit", causes=("variant",)),
            "re-render gw: replicas, api",
            id="the-same-version",
        ),
        pytest.param(build_draft(NEW, NEW, task="edit", causes=("engine",)), "re-render gw", id="without-any-change"),
        pytest.param(
            build_draft(
                OLD, NEW, desired_variant=replace(build_variant(), target=PackageTarget("default", "eu-1", "a" * 80))
            ),
            f"{'a' * 80} v3 → v4: replicas, api",
            id="a-long-name-is-not-cut",
        ),
    ],
)
def test_title_contains_package_version_change_and_changed_fields(new_draft: Draft, expected: str) -> None:
    assert format_message(new_draft).splitlines()[0] == expected


def test_config_commit_is_shown_with_subject_and_author() -> None:
    new_draft = build_draft(OLD, NEW)
    commit = DryCommit(CommitId(CONFIG), "", "Ada Lovelace <ada@example.com>", 0, "Frankfurt: new pool\n\nMore nodes.")
    changes = compare_packages(new_draft.previous_files, new_draft.rendered.files)

    body = format_draft_message(new_draft, build_target(), CONFIG, changes, commit).split("\n\n")

    assert body[1] == f"Caused by: {CONFIG[:7]} Frankfurt: new pool (Ada Lovelace)"
    assert "Caused by" not in format_message(new_draft)


@pytest.mark.parametrize(
    ("task", "causes", "trace", "expected"),
    [
        pytest.param(
            "clone", ("variant",), {}, "PackageVariant default/edge-gw requests this package", id="a-new-owner"
        ),
        pytest.param("edit", ("variant",), {}, "PackageVariant default/edge-gw changed", id="a-changed-owner"),
        pytest.param("edit", ("repository",), {}, "Repository eu-1 changed", id="repository"),
        pytest.param("edit", ("function exec /bin/x%20-y",), {}, "function /bin/x -y changed", id="a-function"),
        pytest.param(
            "edit", ("engine",), {}, "this version of the reconciler renders the package differently", id="engine"
        ),
        pytest.param(
            "edit",
            ("branch",),
            {},
            "the package changed on the branch clusters/eu-1 or on the draft branch",
            id="what-stands-changed",
        ),
        pytest.param(
            "edit", (REGION,), {REGION: "absent"}, "Region default/eu-west was removed", id="an-object-that-is-gone"
        ),
        pytest.param("edit", (POLICY,), {}, "OverridePolicy shop/web changed for cluster eu-1", id="a-policy"),
        pytest.param(
            "edit", (POLICY,), {POLICY: "absent"}, "OverridePolicy shop/web was removed", id="a-policy-that-is-gone"
        ),
        pytest.param(
            "edit",
            ("policy core.kubeadmiral.io/v1alpha1 ClusterOverridePolicy default edge eu-1",),
            {},
            "ClusterOverridePolicy edge changed for cluster eu-1",
            id="a-policy-that-lives-in-no-namespace",
        ),
        pytest.param("edit", ("object v1 Namespace default shop",), {}, "Namespace shop changed", id="nor-does-this"),
        pytest.param(
            "edit",
            ("template kafka.strimzi.io Kafka shop orders",),
            {},
            "the template settings of Kafka shop/orders changed",
            id="a-parent-of-templates",
        ),
        pytest.param(
            "edit",
            ("template grid.example Grid - main",),
            {},
            "the template settings of Grid main changed",
            id="a-parent-in-no-namespace",
        ),
        pytest.param(
            "edit",
            ("template *",),
            {},
            "the template parents or children on eu-1 changed",
            id="all-parents-of-templates",
        ),
        pytest.param(
            "edit",
            ("template-rules grid.example/Grid,apps/Deployment",),
            {},
            "the template merge rules for the kinds of this package changed",
            id="rules-of-templates",
        ),
        pytest.param(
            "edit",
            (ROLLOUT,),
            {},
            "rule mirror of ClusterOverridePolicy edge is rolled out to eu-1",
            id="a-rule-that-arrives",
        ),
        pytest.param(
            "edit",
            ("rollout OverridePolicy/shop/web#0 eu-1",),
            {},
            "rule 0 of OverridePolicy shop/web is rolled out to eu-1",
            id="a-rule-without-a-name",
        ),
        pytest.param(
            "edit",
            (ROLLOUT,),
            {ROLLOUT: "closed"},
            "rule mirror of ClusterOverridePolicy edge has a new version that is not rolled out to eu-1 yet",
            id="a-rule-that-begins-anew",
        ),
        pytest.param(
            "edit",
            (ROLLOUT,),
            {ROLLOUT: "absent"},
            "rule mirror of ClusterOverridePolicy edge is no longer rolled out in waves",
            id="a-rule-that-lost-its-rollout",
        ),
        pytest.param(
            "edit", ("object v1 A default b c",), {}, "A default/b c changed", id="a-name-with-blanks-is-one-name"
        ),
        pytest.param("edit", (REGION,), {}, "Region default/eu-west changed", id="an-object-not-asked-for-any-more"),
        pytest.param(
            "edit",
            ("type v1 X default",),
            {"type v1 X default": "absent"},
            "namespace default no longer contains an object of kind X",
            id="the-last",
        ),
        pytest.param(
            "edit",
            ("type v1 X default",),
            {"type v1 X default": "present"},
            "namespace default now contains an object of kind X",
            id="first",
        ),
        pytest.param("edit", ("strategy",), {}, "strategy changed", id="a-fact-by-its-own-name"),
    ],
)
def test_each_cause_has_a_text(task: str, causes: tuple[str, ...], trace: dict[str, str], expected: str) -> None:
    new_draft = build_draft(OLD, NEW, task=task, causes=causes, trace=trace)

    assert f"Why:\n- {expected}\n" in format_message(new_draft)


@pytest.mark.parametrize("known", [pytest.param(True, id="read"), pytest.param(False, id="too-large-to-read")])
def test_removal_lists_deleted_content_and_reason(known: bool) -> None:
    changes = (
        compare_packages(build_tree({"Kptfile": format_kptfile(), "a.yaml": format_deployment()}), FileTree())
        if known
        else None
    )

    assert format_removal_message(build_removal(before=TREE), build_target(), CONFIG, changes) == (
        "delete gone\n"
        "\n"
        + (
            "Changed:\n- Deployment web: removed\n\nFiles:\n- Kptfile: removed, from gateway@v4 (9f2c9f2)\n\n"
            if known
            else ""
        )
        + "Why:\n- PackageVariant default/old is gone\n"
        "\n"
        "Reconciler-Owner: PackageVariant default/old\n"
        "Reconciler-Task: propose-delete\n"
        "Reconciler-Repository: eu-1\n"
        "Reconciler-Package: gone\n"
        f"Reconciler-Config-Commit: {CONFIG}\n"
    )


def test_parent_set_is_shown_with_its_variant() -> None:
    new_draft = build_draft({}, NEW, desired_variant=build_variant(made_by="edge"), task="clone", causes=("variant",))

    assert "- PackageVariant default/edge-gw, created by PackageVariantSet default/edge requests" in format_message(
        new_draft
    )


@pytest.mark.parametrize(
    ("namespace", "words"),
    [
        pytest.param("shop", "resources of namespace shop are placed on eu-1", id="of-a-namespace"),
        pytest.param("_cluster", "resources without a namespace are placed on eu-1", id="of-none"),
    ],
)
def test_placed_resources_are_described_by_their_scope(namespace: str, words: str) -> None:
    desired_variant = replace(
        build_variant(package=f"resources/{namespace}"),
        owner=build_placement_owner(namespace),
        source=GeneratedSource(FileTree()),
    )
    new_draft = build_draft(
        {}, {"a.yaml": format_deployment()}, desired_variant=desired_variant, task="generate", causes=("variant",)
    )

    assert f"Why:\n- {words}\n" in format_message(new_draft)


def test_empty_sections_are_omitted() -> None:
    body = format_message(build_draft({}, {"a.yaml": format_deployment()}, task="clone", causes=("variant",)))

    assert "Files:" not in body
    assert "Unmet readiness gates" not in body


TRAILER = "\\n\\nReconciler-Owner: PackageVariant default/evil"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({"b.yaml": format_endpoints()}, {"b.yaml": format_endpoints(f'"x{TRAILER}"')}, id="a-value"),
        pytest.param({}, {"b.yaml": f'{format_endpoints()}  "x{TRAILER}": y\n'}, id="a-new-object"),
        pytest.param(
            {"b.yaml": format_endpoints()}, {"b.yaml": f'{format_endpoints()}  "x{TRAILER}": y\n'}, id="a-key"
        ),
        pytest.param({}, {"b.yaml": f'apiVersion: v1\nkind: "X{TRAILER}"\nmetadata: {{name: x}}\n'}, id="a-kind"),
        pytest.param({}, {TRAILER.replace("\\n", "\n"): "x"}, id="a-file-name"),
        pytest.param(
            {"Kptfile": f'upstreamLock: {{git: {{ref: "x{TRAILER}"}}}}'}, {"Kptfile": format_kptfile()}, id="a-lock"
        ),
    ],
)
def test_config_text_cannot_forge_a_trailer(before: dict[str, str], after: dict[str, str]) -> None:
    body = format_message(build_draft(before, after))

    assert [line for line in body.splitlines() if line.startswith("Reconciler-Owner")] == [
        "Reconciler-Owner: PackageVariant default/edge-gw"
    ]


@pytest.mark.parametrize(
    ("trace", "other", "equal"),
    [
        pytest.param({"a": "1", "b": "2"}, {"b": "2", "a": "1"}, True, id="order-does-not-matter"),
        pytest.param({"a": "1"}, {"a": "2"}, False, id="an-answer-does"),
        pytest.param(
            {"object v1 Secret default s": "1"},
            {"object v1 Secret default s": "2"},
            True,
            id="no-hash-of-a-secret-is-in-it",
        ),
    ],
)
def test_equal_inputs_have_equal_digests(trace: dict[str, str], other: dict[str, str], equal: bool) -> None:
    text, two = (format_message(build_draft(OLD, NEW, trace=answers)).splitlines()[-1] for answers in (trace, other))

    assert text.startswith("Reconciler-Inputs: sha256:")
    assert (text == two) is equal


@pytest.mark.parametrize(
    ("totals", "expected"),
    [
        pytest.param(
            b"{packages: 5, targets: 2, blocked: 0, drafted: 3, notReady: 1, findings: 1}",
            "status: 5 packages on 2 targets: 3 drafted, 1 not ready, 1 finding\n",
            id="its-totals-without-zeros",
        ),
        pytest.param(b"{packages: 1, targets: 1}", "status: 1 package on 1 target\n", id="one-of-each"),
        pytest.param(b"{packages: 1, destinations: 1}", "status: 1 package on 1 target\n", id="earlier-key"),
    ],
)
def test_status_message_depends_only_on_the_status_files(totals: bytes, expected: str) -> None:
    assert format_status_message({"summary.yaml": b"totals: " + totals}) == expected


def test_too_large_summary_still_has_totals() -> None:
    totals = b"totals:\n  targets: 1\n  packages: 3\n  drafted: 1\n  unchanged: 2\n  blocked: 0\n  held: 0\n"
    findings = b"findings:\n- message: " + b"x" * 5_000_000 + b"\n"

    both = [format_status_message({"summary.yaml": text}) for text in (totals, totals + findings)]

    assert both[0] == both[1]


def test_state_message_contains_the_target_and_no_data_of_the_pass() -> None:
    assert format_state_message(build_target("eu-1")) == "state: record packages of eu-1\n"


def test_trailers_contain_owner_and_upstream_of_the_variant() -> None:
    desired_variant = replace(build_variant(), owner=build_owner("other"), source=build_upstream("main"))
    trailers = format_message(build_draft(OLD, NEW, desired_variant=desired_variant)).splitlines()[-7:]

    assert trailers[0] == "Reconciler-Owner: PackageVariant default/other"
    assert trailers[4] == f"Reconciler-Upstream: catalog/gateway main {COMMIT}"
