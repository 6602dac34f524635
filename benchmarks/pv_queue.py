# SPDX-License-Identifier: GPL-2.0-only
"""A queue lock with vCPUs that spin, halt and get preempted: large enough to measure an engine on.

N vCPUs on N-1 CPUs take one lock in the order of arrival. A waiter spins for a while, then halts; it halts early
when the one ahead is halted or preempted. It is an abstraction to measure with, not a model of the kernel's lock.
``promela`` writes the same system for SPIN, action by action.
"""

from __future__ import annotations

from schedproof.model import Bool, Enum, Model, Object, Param, Range, action, require

SPIN_LIMIT = 2


class PvQueue(Model):
    """The queue."""

    vcpu = Object("struct vcpu", lambda m: [f"v{i}" for i in range(m.vcpus)])
    at = Enum("IDLE", "SPIN", "HALT", "HOLD", per=vcpu, init="IDLE")
    runs = Bool(per=vcpu)
    pos = Range(0, lambda m: m.vcpus, per=vcpu, init=0)
    spun = Range(0, SPIN_LIMIT, per=vcpu, init=0)
    vcpus = Param(5, 2, 6, "virtual CPUs")
    releases = {"v1": {}}

    def queued(self):
        return sum(1 for v in self.vcpu if self.pos[v] > 0)

    def early(self, me):
        return any(self.pos[v] == self.pos[me] - 1 and (self.at[v] == "HALT" or not self.runs[v])
                   for v in self.vcpu if v != me)

    @action(per=vcpu)
    def lock(self, me):
        require(self.runs[me] and self.at[me] == "IDLE")
        free = self.queued() == 0
        self.pos[me] = self.queued() + 1
        self.at[me] = "HOLD" if free else "SPIN"
        self.spun[me] = 0

    @action(per=vcpu)
    def spin(self, me):
        require(self.runs[me] and self.at[me] == "SPIN" and self.pos[me] > 1)
        require(not self.early(me) and self.spun[me] < SPIN_LIMIT)
        self.spun[me] += 1

    @action(per=vcpu)
    def halt(self, me):
        require(self.runs[me] and self.at[me] == "SPIN" and self.pos[me] > 1)
        require(self.early(me) or self.spun[me] >= SPIN_LIMIT)
        self.at[me] = "HALT"
        self.runs[me] = False
        self.spun[me] = 0

    @action(per=vcpu)
    def acquire(self, me):
        require(self.runs[me] and self.at[me] == "SPIN" and self.pos[me] == 1)
        self.at[me] = "HOLD"
        self.spun[me] = 0

    @action(per=vcpu)
    def unlock(self, me):
        require(self.runs[me] and self.at[me] == "HOLD")
        self.at[me] = "IDLE"
        self.pos[me] = 0
        for v in self.vcpu:
            if v != me:
                if self.pos[v] == 2 and self.at[v] == "HALT":
                    self.at[v] = "SPIN"
                if self.pos[v] > 0:
                    self.pos[v] -= 1

    @action(per=vcpu)
    def preempt(self, me):
        require(self.runs[me])
        self.runs[me] = False

    @action(per=vcpu)
    def schedule(self, me):
        require(not self.runs[me] and self.at[me] != "HALT")
        require(sum(1 for v in self.vcpu if self.runs[v]) < self.vcpus - 1)
        self.runs[me] = True


def promela(n: int) -> str:
    """The same system in Promela; each guarded command is one step."""
    others = {i: [j for j in range(n) if j != i] for i in range(n)}
    queued = "(" + "+".join(f"(pos[{i}]>0)" for i in range(n)) + ")"
    running = "(" + "+".join(f"runs[{i}]" for i in range(n)) + ")"
    lines = [f"byte at[{n}]; bit runs[{n}]; byte pos[{n}]; byte spun[{n}];", "init { do"]
    for i in range(n):
        early = "(" + "||".join(
            f"(pos[{j}]+1==pos[{i}] && (at[{j}]==2 || !runs[{j}]))" for j in others[i]) + ")"
        waits = f"runs[{i}] && at[{i}]==1 && pos[{i}]>1"
        release = "".join(
            f" if :: pos[{j}]==2 && at[{j}]==2 -> at[{j}]=1 :: else fi;"
            f" if :: pos[{j}]>0 -> pos[{j}]=pos[{j}]-1 :: else fi;" for j in others[i])
        lines += [
            f":: d_step {{ runs[{i}] && at[{i}]==0 -> if :: {queued}==0 -> at[{i}]=3 :: else -> at[{i}]=1 fi;"
            f" pos[{i}]={queued}+1; spun[{i}]=0 }}",
            f":: d_step {{ {waits} && !{early} && spun[{i}]<{SPIN_LIMIT} -> spun[{i}]=spun[{i}]+1 }}",
            f":: d_step {{ {waits} && ({early} || spun[{i}]>={SPIN_LIMIT}) -> at[{i}]=2; runs[{i}]=0; spun[{i}]=0 }}",
            f":: d_step {{ runs[{i}] && at[{i}]==1 && pos[{i}]==1 -> at[{i}]=3; spun[{i}]=0 }}",
            f":: d_step {{ runs[{i}] && at[{i}]==3 -> at[{i}]=0; pos[{i}]=0;{release} }}",
            f":: d_step {{ runs[{i}] -> runs[{i}]=0 }}",
            f":: d_step {{ !runs[{i}] && at[{i}]!=2 && {running}<{n - 1} -> runs[{i}]=1 }}"]
    return "\n".join([*lines, "od }", ""])
