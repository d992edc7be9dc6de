"""The vocabularies of other providers than OpenAI, for the package ``cupel-context``.

``cupel`` finds this package by itself: with it, the tokens of Llama 3, Qwen 2.5 and 3, DeepSeek,
Mistral and Kimi K2 are counted exactly. Built with Meta Llama 3.

>>> import cupel_vocabularies
>>> cupel_vocabularies.encodings()
['deepseek_v3', 'kimi_k2', 'llama3', 'mistral_v3', 'qwen2']
>>> cupel_vocabularies.count("llama3", "hello world")
2
"""

from cupel_vocabularies._vocabularies import __version__, count, encodings

__all__ = ["__version__", "count", "encodings"]
