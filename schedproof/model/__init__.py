# SPDX-License-Identifier: GPL-2.0-only
"""How a mechanism is written down."""

from schedproof.model.actions import (
    action,
    block,
    cdiv,
    choose,
    cmod,
    environment,
    final,
    implies,
    init,
    kernel,
    require,
    ring,
    step,
    thread,
)
from schedproof.model.domains import (
    NULL,
    Bool,
    Constant,
    Current,
    Enum,
    Int,
    Link,
    Object,
    Param,
    Pointer,
    Range,
    Ref,
    Switch,
    Values,
)
from schedproof.model.instance import Instance
from schedproof.model.model import Model
from schedproof.model.vocabulary import Vocabulary

__all__ = ["NULL", "Bool", "Constant", "Current", "Enum", "Instance", "Int", "Link", "Model", "Object", "Param",
           "Pointer", "Range", "Ref", "Switch", "Values", "Vocabulary", "action", "block", "cdiv", "choose", "cmod",
           "environment", "final", "implies", "init", "kernel", "require", "ring", "step", "thread"]
