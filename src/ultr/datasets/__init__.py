"""Data sets: files of judged lists, the folders of the well-known ones, and a generator."""
