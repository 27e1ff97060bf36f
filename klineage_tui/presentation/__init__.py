"""From the engine's dataclasses to lines of styled text: pure functions, tested without a terminal."""
