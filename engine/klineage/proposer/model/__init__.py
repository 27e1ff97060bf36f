"""A model as a proposer: what it is asked, the child that asks it, and what is made of its answer."""
