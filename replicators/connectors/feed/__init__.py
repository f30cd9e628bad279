"""How a row change becomes a message. Every target that is a feed uses this; it knows none of
them."""
