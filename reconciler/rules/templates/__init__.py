"""Templates that a parent gives to its children, property by property, as Kafka does to its KafkaNodePools."""
