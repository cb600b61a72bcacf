"""The HTTP server of the service. It receives webhooks.

A webhook only starts a pass. The content of a webhook has no effect on the result of the pass.
"""
