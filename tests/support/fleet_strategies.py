"""Generated fleets and rules for property tests of permissions."""

from __future__ import annotations

from hypothesis import strategies as st

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.selectors import LabelSelector
from reconciler.output.fleet.model import TargetEntry
from reconciler.output.fleet.publications import Publication
from reconciler.output.fleet.risk import RISK_CLASSES, RISK_LEVELS
from reconciler.review.permissions import RoleRule
from tests.support.fleet_index import create_index, create_refusal, create_row, create_target

NORTH = LabelSelector((("region", "north"),))
SOUTH = LabelSelector((("region", "south"),))
NAMES = ("berlin", "lisbon", "porto", "eu-west-1", "eu-west-10")
NAME = st.sampled_from(NAMES)
ROLES = st.sampled_from(["viewer", "reviewer", "admin"])
SELECTORS = st.sampled_from([LabelSelector(), NORTH, SOUTH])
RULES = st.builds(
    RoleRule,
    role=ROLES,
    targets=SELECTORS,
    packages=st.sampled_from([(), ("web",), ("d*",), ("**",)]),
    tenants=st.sampled_from([(), ("payments",), ("shop",)]),
    max_risk=st.sampled_from(RISK_LEVELS),
    allows_removals=st.booleans(),
)


@st.composite
def build_targets(draw: st.DrawFn, name: str) -> TargetEntry:
    """Return a target with packages whose texts name other targets."""
    rows = [
        create_row(
            name,
            package,
            change=draw(st.sampled_from(["", "update", "other"])),
            risk=draw(st.sampled_from(list(RISK_CLASSES))),
            tenant=draw(st.sampled_from(["", "payments", "shop"])),
            refusals=draw(st.sampled_from([(), (create_refusal(f"waits for {draw(NAME)}"),)])),
            rejection=f"rejected by Ada: see {draw(NAME)}",
            causes=(f"config of {draw(NAME)}",),
            template_effects=(f"KafkaNodePool kafka/{draw(NAME)}: pods restart",),
            publication=Publication(1, "c", "Ada", 1, f"Approve {draw(NAME)}", f"after {draw(NAME)}"),
        )
        for package in draw(st.sets(st.sampled_from(["web", "db"])))
    ]
    return create_target(name, {"region": draw(st.sampled_from(["north", "south"]))}, *rows)


FLEETS = st.builds(
    create_index,
    st.tuples(*map(build_targets, NAMES)),
    st.lists(
        st.builds(
            Finding,
            code=st.just("A"),
            message=st.sampled_from([f"see {name}" for name in NAMES]),
            location=st.builds(
                SourceLocation,
                object=st.sampled_from([f"Repository/default/{name}" for name in NAMES]),
                package=st.sampled_from(["", *(f"{name}/web" for name in NAMES)]),
            ),
        )
    ),
    finding_tenants=st.dictionaries(
        st.sampled_from([f"Repository/default/{name}" for name in NAMES]), st.sampled_from(["payments", "shop"])
    ),
)
