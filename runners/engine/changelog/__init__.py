"""Raw segments and change files: where they lie, which are listed, what waits."""
