# SPDX-License-Identifier: GPL-2.0-only
"""Real C: kernel trees, patches, the declared configuration, and the reader that turns functions into programs."""

from schedproof.kernel.config import DEFAULT, Config
from schedproof.kernel.reader import Reader, read
from schedproof.kernel.tree import Absent, Tree
from schedproof.model.vocabulary import Vocabulary

__all__ = ["DEFAULT", "Absent", "Config", "Reader", "Tree", "Vocabulary", "read"]
