"""Results of earlier passes that a pass uses again: checkpoints of unchanged targets, and packages of other shards."""
