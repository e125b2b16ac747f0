"""One module per area; each check stands beside a good and a bad example."""
