"""Allow, ask or deny: rules, past answers, and the reading of shell commands. Pure, like `lifecycle`."""
