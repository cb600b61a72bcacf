"""Names and contents of draft branches and tags. Decisions about which packages to draft do not belong here."""
