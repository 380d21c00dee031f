"""Question files as people have them: txt, csv, tsv, json, jsonl, promptfoo's YAML tests.

A file is read twice: once to tell all that is wrong with it, with line numbers, before
anything is spent; then row by row as rows are run, so that its length costs no memory.
"""

from __future__ import annotations

from research.questions.entries import Problem
from research.questions.file import Checked, Questions
from research.questions.rows import Row

__all__ = ["Checked", "Problem", "Questions", "Row"]
