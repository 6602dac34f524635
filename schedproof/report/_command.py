# SPDX-License-Identifier: GPL-2.0-only
"""The shell command that shows a trace again."""

from __future__ import annotations

import shlex

from schedproof.errors import SchedproofError
from schedproof.trace import Trace


def command_words(trace: Trace) -> list[str]:
    """The command in words that must not be broken: each option together with its value.

    Only parameters that are not the property's own or the model's default are given.
    """
    if trace.sources:
        # The counterexample runs code that was read from a tree: only the reader knows where hers lies.
        words = ["schedproof trace", f"{trace.model}:{trace.property}", "--tree YOUR-TREE"]
    else:
        words = ["schedproof trace", f"{trace.model}:{trace.property}"]
    words.append(f"--variant {shlex.quote(trace.variant)}")
    usual = _usual(trace)
    return words + [f"--set {name}={value}" for name, value in trace.params.items() if usual.get(name) != value]


def command_lines(trace: Trace, width: int) -> list[str]:
    """The command, continued with backslashes where it would be wider than ``width``."""
    lines, line = [], ""
    for word in command_words(trace):
        longer = f"{line} {word}" if line else f"  {word}"
        if line and len(longer) > width - 2:
            lines.append(line + " \\")
            line = f"      {word}"
        else:
            line = longer
    return [*lines, line]


def _usual(trace: Trace) -> dict[str, int]:
    """The parameters that the property is decided with when none is given; nothing where the model is not known."""
    from schedproof import registry

    try:
        _, prop = registry.find_property(f"{trace.model}:{trace.property}")
        defaults = {name: param.default for name, param in prop.model.parameters().items()}
    except SchedproofError:
        return {}
    return {**defaults, **prop.instance}
