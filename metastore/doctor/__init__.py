"""The doctor: what is wrong with an installation right now, why it matters, and the command that ends it."""
