# SPDX-License-Identifier: GPL-2.0-only
"""Queue waiters that halt because the one ahead is not running.
"""

from __future__ import annotations

from schedproof.model import NULL, Model, Object, Param, Pointer, Range, Values, Vocabulary, environment

PV = "kernel/locking/qspinlock_paravirt.h"


class PvWaitEarly(Model):
    """One queued spinlock and the nodes of its waiters."""

    node = Object("struct pv_node", lambda m: [f"n{i}" for i in range(m.cpus)])
    lock = Object("struct qspinlock", "lock")
    entry = Object("struct pv_hash_entry", lambda m: [f"he{i}" for i in range(m.cpus)])

    state = Values({0: "running", 1: "halted", 2: "hashed"}, per=node, c="state", init=0)
    mcs_locked = Range(0, 1, per=node, c="mcs.locked", init=0)
    cpu = Range(0, lambda m: m.cpus - 1, per=node, c="cpu", init=0)
    locked = Values({0: "free", 1: "_Q_LOCKED_VAL", 3: "_Q_SLOW_VAL"}, per=lock, c="locked", init=0)
    pending = Range(0, 1, per=lock, c="pending", init=0)
    tail = Values(lambda m: {i << 2: f"cpu {i - 1}" if i else "none" for i in range(m.cpus + 1)}, per=lock, c="tail", init=0)
    hash_lock = Pointer(lock, per=entry, c="lock")
    hash_node = Pointer(node, per=entry, c="node")

    cpus = Param(3, 1, 8, "CPUs")

    releases = {"v4.18": {}, "v6.1": {}, "v6.12": {}}
    functions = dict.fromkeys(("pv_wait_early", "pv_wait_node", "pv_kick_node", "pv_wait_head_or_lock",
                               "__pv_queued_spin_unlock_slowpath", "pv_hybrid_queued_unfair_trylock"), PV)
    scaled = {"SPIN_THRESHOLD": "4", "PV_PREV_CHECK_MASK": "1"}
    vocabulary = Vocabulary(
        callees={"pv_wait@struct pv_node.state": "hypercall", "pv_wait@struct qspinlock.locked": "hypercall",
                 "pv_kick": "hypercall", "pv_hash": "table", "pv_unhash": "table"},
        methods={"pv_wait@struct pv_node.state": "pv_wait_state", "pv_wait@struct qspinlock.locked": "pv_wait_locked"},
        results={"pv_hash": "struct pv_hash_entry.lock"},
        noop={"lockevent_inc": "counter", "lockevent_cond_inc": "counter"},
        ignore={("", "debug_locks_silent"): "only decides whether a warning is printed"},
        constants={"SPIN_THRESHOLD": 4, "PV_PREV_CHECK_MASK": 1})

    @environment
    def pv_wait_state(self, pn, val):
        return

    @environment
    def pv_wait_locked(self, lock, val):
        return

    @environment
    def pv_kick(self, cpu):
        return

    @environment
    def pv_hash(self, lock, node):
        for he in self.entry:
            if self.hash_lock[he] == NULL:
                self.hash_lock[he] = lock
                self.hash_node[he] = node
                return he
        return NULL

    @environment
    def pv_unhash(self, lock):
        for he in self.entry:
            if self.hash_lock[he] == lock:
                self.hash_lock[he] = NULL
                return self.hash_node[he]
        return NULL
