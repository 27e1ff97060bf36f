"""An MCP server on stdin and stdout: what an agent needs to use cards, and to be held to what they promise."""
