"""Templates that a child resource inherits from its parent by property, for example a KafkaNodePool from its Kafka.

This package reads the merge rules, finds parents and children on a cluster, and merges templates. Knowledge of Strimzi
is in the subpackage `strimzi`.
"""
