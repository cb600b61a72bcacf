"""Values of the planning layer: targets, package sources, recorded states, outcomes and finding codes.

Functions that decide about packages do not belong here.
"""
