"""What stands between a harness and the world: it carries every call, and is one of the witnesses of it.

model_gateway  to the model, with the key that the harness never has
tool_gateway   to the plugin's MCP server
faces          how the model gateway is reached: HTTP for a cell, a transport for our own loop
gate           the farm's limits for a model, which every request passes
wire           what of a request and an answer is read, as pure functions
reply          what the gateway answers a harness in the provider's place
tries          when and how often a request is tried again
upstreams      the models that can be reached: a provider, a simulated one
line           the connections to one of them; stream: the bytes of each
serving        applications behind sockets of the loopback
"""
