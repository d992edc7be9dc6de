"""Token counts with the embedded vocabularies."""

__version__: str

def encodings() -> list[str]:
    """Returns the names of the encodings."""

def count(encoding: str, text: str) -> int:
    """Counts the tokens of a text. Special tokens count as plain text."""
