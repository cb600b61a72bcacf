"""The message of a revision's tag: read back line by line, and the same every time (porch 15.3)."""

from __future__ import annotations

from dataclasses import replace

from reconciler.krm.trailers import read_trailers
from reconciler.planning.state import Offer, PackageRecord, Revision
from reconciler.planning.tags import MissingTag
from reconciler.reporting.tag_message import tag_message
from reconciler.rules.variants.workspaces import workspace_of
from tests.unit.reporting.world import COMMIT, TREE, destination, owner, upstream

OFFER = Offer(TREE, TREE, TREE, TREE, TREE, "", None, upstream().words)  # type: ignore[arg-type]
RECORD = PackageRecord(owner(), owned=True, labels={"tier": "one"}, annotations={"note": "a\nReconciler-Revision: 9 é"})
TAG = MissingTag("eu-1/gw/v3", "gw", Revision(3, COMMIT, OFFER, 4), RECORD)


def test_the_message_says_all_that_a_state_is_rebuilt_from() -> None:
    message = tag_message(TAG, destination())

    assert message == (
        "publish(eu-1/gw): v3\n\n"
        "Reconciler-Task: publish\n"
        "Reconciler-Owner: PackageVariant default/edge-gw\n"
        f"Reconciler-Owner-UID: {owner().key.uid}\n"
        "Reconciler-Repository: eu-1\n"
        "Reconciler-Package: gw\n"
        "Reconciler-Workspace: packagevariant-4\n"
        "Reconciler-Revision: 3\n"
        f"Reconciler-Upstream: catalog/gateway gateway/v4 {COMMIT}\n"
        'Reconciler-Labels: {"tier": "one"}\n'
        'Reconciler-Annotations: {"note": "a\\nReconciler-Revision: 9 \\u00e9"}\n'
    )
    assert read_trailers(message)["Reconciler-Revision"] == "3"
    assert workspace_of(message, "gw") == "packagevariant-4"


def test_what_nobody_knows_is_left_out() -> None:
    revision = Revision(3, COMMIT, replace(OFFER, upstream=""))
    bare = MissingTag("eu-1/gw/v3", "gw", revision, PackageRecord(owner(), owned=True))

    told = read_trailers(tag_message(bare, destination()))

    assert sorted(told) == [
        f"Reconciler-{one}" for one in ("Owner", "Owner-UID", "Package", "Repository", "Revision", "Task")
    ]
