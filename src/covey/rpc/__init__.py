"""JSON-RPC 2.0, one message on each line: for programs that speak with Covey through a pipe. Knows nothing of ours."""
