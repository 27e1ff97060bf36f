"""What makes a card less than it claims to be, one module for each way of looking."""
