# SPDX-License-Identifier: GPL-2.0-only
"""A two-vCPU queue waiter in small: the waiter tests, then halts; the other one sets a flag and kicks.

Halting and kicking go through one state word, as pv_wait_node and pv_kick_node of
kernel/locking/qspinlock_paravirt.h have it. The switch takes away the re-check between announcing the halt and
halting: then the kick may find nobody to wake, and the waiter halts for ever.
"""

from schedproof.model import Bool, Enum, Model, Object, Switch, block, final, kernel, step, thread

QSPINLOCK = "kernel/locking/qspinlock_paravirt.h"


class QueueWaiter(Model):
    """One vCPU waits for its turn, one hands it over."""

    waiter = Object("struct pv_node", "w")
    giver = Object("struct pv_node", "g")

    locked = Bool()                                   # node->locked: the waiter's turn has come
    state = Enum("running", "halted", init="running")
    token = Bool()                                    # a kick that came while the vCPU was not halted is kept
    asleep = Bool(ghost=True)
    kicked = Bool(ghost=True)

    recheck = Switch("present", "removed")
    latch = Switch("kept", "lost")
    releases = {"v6.1": {}}
    mutants = {"recheck_removed": dict(recheck="removed"), "latch_lost": dict(latch="lost")}

    @kernel(QSPINLOCK, grain="access")
    def pv_wait_node(self, me):
        while not self.locked:
            self.state = "halted"
            if self.recheck == "removed" or not self.locked:
                self.pv_wait()
            self.state = "running"

    @kernel(QSPINLOCK, grain="access")
    def pv_kick_node(self, me):
        self.locked = True
        if self.state == "halted":
            self.kick()

    def pv_wait(self):
        """The hypercall looks at the state once more, and halts in a step of its own."""
        if self.state == "halted":
            step()
            self.asleep = True
            block(until=self.token)
            self.token = False
            self.asleep = False

    def kick(self):
        if self.latch == "kept":
            self.token = True

    @thread(per=waiter, cost={"steps": 1})
    def waiting(self, me):
        self.pv_wait_node(me)

    @thread(per=giver, cost={"steps": 1})
    def giving(self, me):
        self.pv_kick_node(me)
        self.kicked = True

    @final
    def nothing_left_to_do(self):
        """The giver has done its part; whether the waiter sleeps for ever is what the property asks."""
        return self.kicked
