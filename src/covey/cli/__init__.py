"""The commands. They see the client and the protocol, never the engine or the store."""
