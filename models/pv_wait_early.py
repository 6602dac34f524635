# SPDX-License-Identifier: GPL-2.0-only
"""Queue waiters that halt because the one ahead is not running. Source: kernel/locking/qspinlock_paravirt.h.

One queued spinlock, and the queue nodes of its waiters: one a CPU, nesting is left out. So far the model holds the data
of the mechanism and the words for the C; its six functions are read from the tree, and nothing in it moves by itself.

What the C looks at, and what it is here:

    struct pv_node         state (``enum vcpu_state``), the MCS flag ``mcs.locked``, the number of its CPU
    struct qspinlock       the word, in its parts: locked byte, pending byte, tail
    struct pv_hash_entry   which lock is hashed with which node; an entry is free while its lock is NULL

The lock word is a union: ``val`` (32 bits), ``locked_pending`` (16 bits) and the bytes ``locked``, ``pending`` and
``tail`` (16 bits) lie on top of each other. The model has the three parts only, which share no bytes. A read or a write
of ``val`` or of ``locked_pending`` is one of the parts that it is made of, as the tree's own definition of the union
says (x86-64 with less than 16 K CPUs), and all of them at once. The reader refuses a model that declares two members
that share bytes. All fields hold exact C values: 3 is ``_Q_SLOW_VAL``, and a tail is ``(cpu + 1) << 2``, which is the
upper half of ``encode_tail(cpu, 0)``.

Two constants are scaled, and belong together. ``SPIN_THRESHOLD`` (1 << 15) counts down to 0, and the node ahead is
looked at where ``loop & PV_PREV_CHECK_MASK`` (0xff) is 0: in the first round already, for the threshold is a multiple
of 256, and 128 times in all. With 4 and 1 that is in the first round, too, and twice in all.

``struct qspinlock **`` is what ``pv_hash`` returns: a pointer to ``lock`` of an entry. ``(struct qspinlock **)1``, by
which ``pv_wait_head_or_lock`` notes that ``pv_kick_node`` has hashed the lock, points to nothing, and is not NULL.

What lies between two calls of ``cpu_relax``, ``pv_wait`` and the hash table is one step, in which no other CPU writes
anything: functions that are equal are so in that sense. The order of accesses inside of a step is not compared.

The trees of 6.1 and 6.12 differ in ``cmpxchg`` against ``try_cmpxchg``, which is the same here, so no switch tells the
releases apart.
"""

from __future__ import annotations

from schedproof.model import NULL, Bool, Model, Object, Param, Pointer, Range, Values, Vocabulary, environment

PV = "kernel/locking/qspinlock_paravirt.h"

SPIN_THRESHOLD = 4                   # 1 << 15, arch/x86/include/asm/spinlock.h
PV_PREV_CHECK_MASK = 1               # 0xff

HYPERCALL = "the host halts and wakes the vCPU: "


def tails(m):
    """The upper half of the lock word: nobody, or the CPU of the last waiter."""
    return {0: "none", **{(i + 1) << 2: f"n{i}" for i in range(m.cpus)}}


class PvWaitEarly(Model):
    """One queued spinlock and the nodes of its waiters."""

    node = Object("struct pv_node", lambda m: [f"n{i}" for i in range(m.cpus)])
    lock = Object("struct qspinlock", "lock")
    entry = Object("struct pv_hash_entry", lambda m: [f"he{i}" for i in range(m.cpus)])

    state = Values({0: "running", 1: "halted", 2: "hashed"}, per=node, c="state", init=0)
    node_locked = Range(0, 1, per=node, c="mcs.locked", init=0)              # it is the queue's head now
    cpu = Range(0, lambda m: m.cpus - 1, per=node, c="cpu", init=0)          # set by pv_init_node

    locked = Values({0: "0", 1: "_Q_LOCKED_VAL", 3: "_Q_SLOW_VAL"}, per=lock, c="locked", init=0)
    pending = Range(0, 1, per=lock, c="pending", init=0)                     # the head spins: no stealing
    tail = Values(tails, per=lock, c="tail", init=0)

    hash_lock = Pointer(lock, per=entry, c="lock")
    hash_node = Pointer(node, per=entry, c="node")

    kicked = Bool(per=node)                                                  # the CPU's token, kvm's pv_unhalted

    cpus = Param(3, 2, 8, "CPUs, each with one queue node")

    releases = {
        "v4.18": {},
        "v6.1": {},
        "v6.12": {},
    }
    functions = {
        "pv_wait_early": PV,
        "pv_wait_node": PV,
        "pv_kick_node": PV,
        "pv_wait_head_or_lock": PV,
        "__pv_queued_spin_unlock_slowpath": PV,
        "pv_hybrid_queued_unfair_trylock": PV,
    }
    scaled = {
        "SPIN_THRESHOLD": "4 rounds instead of 1 << 15",
        "PV_PREV_CHECK_MASK": "every 2nd round instead of every 256th, the first one included",
    }

    vocabulary = Vocabulary(
        callees={
            "pv_wait@struct pv_node.state": HYPERCALL + "HLT in kvm_wait, unless the byte has changed",
            "pv_wait@struct qspinlock.locked": HYPERCALL + "HLT in kvm_wait, unless the byte has changed",
            "pv_kick": HYPERCALL + "KVM_HC_KICK_CPU",
            "cpu_relax": "the other CPUs go on: who waits for them may find anything when looking again",
            "pv_hash": "the table is an array, searched from a hash of the lock's address on",
            "pv_unhash": "the table is an array, searched from a hash of the lock's address on",
        },
        methods={
            "pv_wait@struct pv_node.state": "pv_wait_state",
            "pv_wait@struct qspinlock.locked": "pv_wait_locked",
        },
        results={"pv_hash": "struct pv_hash_entry.lock"},
        noop={
            "lockevent_inc": "a counter in debugfs",
            "lockevent_cond_inc": "a counter in debugfs",
        },
        ignore={("", "debug_locks_silent"): "only decides whether a warning is printed"},
        constants={"SPIN_THRESHOLD": SPIN_THRESHOLD, "PV_PREV_CHECK_MASK": PV_PREV_CHECK_MASK},
    )

    # ------------------------------------------------------------------------------------------- the host's half
    @environment
    def pv_wait_state(self, pn, val):
        """pv_wait(&pn->state, val) that returns at once: a wake-up that is spurious, which the C has to cope with."""

    @environment
    def pv_wait_locked(self, lock, val):
        """pv_wait(&lock->locked, val), likewise."""

    @environment
    def cpu_relax(self):
        """The other CPUs go on; none of them does anything, so far."""

    @environment
    def pv_kick(self, cpu):
        for pn in self.node:
            if self.cpu[pn] == cpu:
                self.kicked[pn] = True

    # ------------------------------------------------------------------------------------------- the hash table
    @environment
    def pv_hash(self, lock, node):
        """Any free entry will do. There is always one: a lock has one at most. (BUG() else; here following NULL.)"""
        for he in self.entry:
            if self.hash_lock[he] == NULL:
                self.hash_lock[he] = lock
                self.hash_node[he] = node
                return he
        return NULL

    @environment
    def pv_unhash(self, lock):
        """The node that waits for a lock; its entry is free again. BUG() where there is none; here following NULL."""
        for he in self.entry:
            if self.hash_lock[he] == lock:
                self.hash_lock[he] = NULL
                return self.hash_node[he]
        return NULL
