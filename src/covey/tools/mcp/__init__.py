"""A client of MCP servers, of both eras of the protocol. It knows neither runs nor trust."""
