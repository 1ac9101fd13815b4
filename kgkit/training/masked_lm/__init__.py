"""Training an encoder from nothing, as a masked language model."""
