"""A full-text index of the user's own documents, or of a recorded set of pages, as a web to ask."""

from .building import PageReader, build
from .local import LocalWeb
from .schema import is_built
from .sources import Unreadable
from .writing import BuildReport

__all__ = ["BuildReport", "LocalWeb", "PageReader", "Unreadable", "build", "is_built"]
