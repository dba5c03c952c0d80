"""The values that everything passes around, and how they are split and stored. No torch here."""
