"""Open drafts and their transitions: propose, approve, reject and drop."""
