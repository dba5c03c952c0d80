"""Values, readers and generators of data. No torch here."""
