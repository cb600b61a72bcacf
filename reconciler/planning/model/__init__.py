"""Values of the planning layer: targets, sources, recorded state, outcomes and finding codes. Decisions do not belong
here.
"""
