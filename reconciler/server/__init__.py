"""The HTTP server of the service, which receives webhooks.

A webhook only starts a pass. The content of a webhook does not influence the result of the pass.
"""
