"""The ranking service: an exported ranker behind HTTP, without torch."""
