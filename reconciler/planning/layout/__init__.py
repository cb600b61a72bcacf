"""Names and contents of draft branches and tags. Decisions about which packages are drafted do not belong here."""
