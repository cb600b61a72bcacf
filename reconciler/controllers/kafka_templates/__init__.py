"""Templates that a child inherits from its parent, for example a KafkaNodePool from its Kafka.

The package reads the merge rules, finds parents and children on a cluster, and merges their templates. The subpackage
`strimzi` contains the code that depends on the Strimzi operator.
"""
