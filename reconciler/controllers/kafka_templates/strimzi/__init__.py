"""Behavior of the Strimzi operator: checks of KafkaNodePools, and the objects that the operator creates for them.

This subpackage does not merge templates.
"""
