"""To and from other tools: Agent Skills, training records, the authors' cards, MCP."""
