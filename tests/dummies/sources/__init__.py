"""The smallest plugins there are. No test but that of the dummies finds them."""
