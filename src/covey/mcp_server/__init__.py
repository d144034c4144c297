"""`covey mcp serve`: other agents use Covey through the Model Context Protocol; it is one client of the server."""
