# SPDX-License-Identifier: GPL-2.0-only
"""A gate that lets one visitor through between two beats of a timer. Its C is in tests/kernel/gate.py."""

from schedproof.model import Bool, Model, Object, Range, Vocabulary, action, environment, kernel, require

FILE = "kernel/sched/gate.c"


class Gate(Model):
    """One gate, one visitor at a time."""

    gate = Object("struct gate", "g")
    open = Bool(per=gate, c="open", init=True)
    waiting = Bool(per=gate, c="waiting")
    count = Range(0, 3, per=gate, c="count", init=0)
    phase = Range(0, 2, init=0)

    releases = {"v6.1": {}}
    scaled = {"GATE_LIMIT": "3 instead of 1000"}
    vocabulary = Vocabulary(
        callees={"gate_log": "the log is written elsewhere"},
        static_keys={"gate_in_use": (True, "there is a gate")},
        ignore={("struct gate", "stamp"): "no clock", ("struct gate", "owner"): "nobody asks"},
        noop={"trace_gate": "tracing"},
        constants={"GATE_STEP": 1})

    @kernel(FILE)
    def gate_ready(self, g):
        return self.open[g]

    @kernel(FILE)
    def gate_pass(self, g):
        if self.waiting[g] and self.gate_ready(g):
            self.waiting[g] = False
            self.open[g] = False

    @kernel(FILE)
    def gate_refill(self, g):
        self.open[g] = True

    @kernel(FILE)
    def gate_slow(self, g):
        if self.count[g] < 3:
            self.count[g] += 1

    @environment
    def gate_log(self, g):
        self.count[g] = 0

    @action(cost={"ms": 1})
    def tick(self):
        require(self.phase < 2)
        self.phase += 1
        self.gate_pass(self.gate.g)

    @action
    def timer(self):
        require(self.phase == 2)
        self.phase = 0
        self.gate_refill(self.gate.g)
        self.gate_slow(self.gate.g)

    @action
    def knock(self):
        require(not self.waiting[self.gate.g])
        self.waiting[self.gate.g] = True
