"""Problems and errors, with the texts that people read."""
