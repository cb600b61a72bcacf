"""The types of the policy fields of a PackageVariant, such as `deletionPolicy`, with descriptions of these fields."""

from typing import Literal

AdoptionPolicy = Literal["adoptNone", "adoptExisting"]
ADOPTION_DESCRIPTION = (
    "Behavior if the package already exists. adoptNone reports an error, adoptExisting adopts the package."
)

DeletionPolicy = Literal["delete", "orphan"]
DELETION_DESCRIPTION = (
    "Behavior if no object requests the package. delete proposes its deletion, orphan keeps it without an owner."
)

ConflictPolicy = Literal["upstream", "local", "block"]
CONFLICT_DESCRIPTION = (
    "Side whose value the draft contains after a conflict between an upstream change and a local change. The default is"
    " the setting `merge.conflict_policy`."
)

UPDATE_STRATEGY_DESCRIPTION = (
    "Strategy for merging upstream changes and local changes. The default is the strategy in the Kptfile."
)

RepeatedResourcePolicy = Literal["refuse", "lastWins"]
REPEATED_RESOURCE_DESCRIPTION = (
    "Behavior if two of the sources contain the same resource. refuse: an error. lastWins: the resource of the later "
    "source is used, with a warning."
)
