"""Behavior of the Strimzi operator: validation of a KafkaNodePool's template, and the objects that result from it.

The merge of templates is not part of this package.
"""
