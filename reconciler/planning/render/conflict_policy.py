"""The decision which side wins if a local change and the upstream changed the same field.

This module selects the conflict policy of a package. `krm/merge3` applies the policy to each field.
"""

from __future__ import annotations

from typing import Literal

from reconciler.api.porch.policies import ConflictPolicy
from reconciler.api.profile import Profile


def select_conflict_policy(
    owner_policy: ConflictPolicy | None, setting: ConflictPolicy | Literal["", None], profile: Profile
) -> ConflictPolicy:
    """Return the policy that the owner sets, else the setting, else the default of the profile.

    By default, profile `safe` keeps local changes. Profile `compat` uses the value of the upstream, as kpt does.
    """
    return owner_policy or setting or ("local" if profile == "safe" else "upstream")
