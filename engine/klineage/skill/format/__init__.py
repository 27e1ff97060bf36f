"""How a card is written down: YAML that keeps a person's hand, Markdown around code, and the way between them."""
