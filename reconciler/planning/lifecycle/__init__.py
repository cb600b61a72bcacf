"""Open drafts and their transitions: propose, publish, reject and drop."""
