"""Tests of the message of a revision tag: it is reproducible, and its lines are parsed again."""

from __future__ import annotations

from dataclasses import replace

from reconciler.controllers.package_variants.upstream_resolution import parse_workspace
from reconciler.krm.git_formats import parse_trailers
from reconciler.output.commit_messages import format_tag_message
from reconciler.planning.layout.refs import MissingTag
from reconciler.planning.model.state import PackageRecord, PublishedRevision, RenderedVersion
from tests.unit.output.builders import COMMIT, TREE, build_owner, build_target, build_upstream

OFFER = RenderedVersion(TREE, TREE, TREE, TREE, TREE, "", None, build_upstream().summary)  # type: ignore[arg-type]
RECORD = PackageRecord(
    build_owner(), is_owned=True, labels={"tier": "one"}, annotations={"note": "a\nReconciler-Revision: 9 é"}
)
TAG = MissingTag("eu-1/gw/v3", "gw", PublishedRevision(3, COMMIT, OFFER, 4), RECORD)


def test_message_contains_all_fields_that_rebuild_the_state() -> None:
    message = format_tag_message(TAG, build_target())

    assert message == (
        "publish gw v3\n\n"
        "Reconciler-Task: publish\n"
        "Reconciler-Owner: PackageVariant default/edge-gw\n"
        f"Reconciler-Owner-UID: {build_owner().key.uid}\n"
        "Reconciler-Repository: eu-1\n"
        "Reconciler-Package: gw\n"
        "Reconciler-Workspace: packagevariant-4\n"
        "Reconciler-Revision: 3\n"
        f"Reconciler-Upstream: catalog/gateway gateway/v4 {COMMIT}\n"
        'Reconciler-Labels: {"tier": "one"}\n'
        'Reconciler-Annotations: {"note": "a\\nReconciler-Revision: 9 \\u00e9"}\n'
    )
    assert parse_trailers(message)["Reconciler-Revision"] == "3"
    assert parse_workspace(message, "gw") == "packagevariant-4"


def test_unknown_fields_are_omitted() -> None:
    revision = PublishedRevision(3, COMMIT, replace(OFFER, upstream=""))
    bare = MissingTag("eu-1/gw/v3", "gw", revision, PackageRecord(build_owner(), is_owned=True))

    trailers = parse_trailers(format_tag_message(bare, build_target()))

    assert sorted(trailers) == [
        f"Reconciler-{item}" for item in ("Owner", "Owner-UID", "Package", "Repository", "Revision", "Task")
    ]
