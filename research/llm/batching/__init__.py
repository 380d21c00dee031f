"""Calls at half price and in their own time: gathered, sent as one batch, waited for, handed back.

Both interfaces are spoken as their references have them: OpenAI's Batch (`openai.py`) and Anthropic's Message
Batches (`anthropic.py`). What is under way is on disk (`kept.py`), so that whoever was killed while the provider
works takes the same batch up again.
"""
