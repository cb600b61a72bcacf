"""What Strimzi makes of the templates of a KafkaNodePool (strimzi 3.5, 3.6, 5, 6); merging them is not its part."""
