"""SkillCards: what an optimization is, when it holds, what it gains, what breaks without it, and what shows that."""
