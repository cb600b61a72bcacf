"""What the service listens to, and what it shows: HTTP towards us, never facts about what is to be done."""
