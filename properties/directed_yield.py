# SPDX-License-Identifier: GPL-2.0-only
"""Who gets the CPU of a vCPU that spins, and how soon, in which kernels. Labels A: facts D.A; KV: known cases."""

import z3

from schedproof.model import NULL
from schedproof.property import Claim, Invariant, Lemma, Property, Within, WorstCase
from schedproof.suite.models.directed_yield import DirectedYield

NO_TURNS = ("base",)
TURNS = ("rfc-v1", "rfc-v4", "rfc-v5", "v3.9", "v3.10", "v4.14", "v5.3", "v5.13", "v6.1", "v6.12", "v6.19")
RIGHT_CURSOR = (*NO_TURNS, *TURNS, "v6.19+eligibility=false", "v6.13+store_index")


def holder_waits(m):
    """The lock holder could run, and has no CPU."""
    return m.ready[m.holder]


boosted = Property(
    "boosted", DirectedYield,
    "A preempted lock holder gets a CPU after a bounded number of successful yields, whatever the host does.",
    WorstCase(holder_waits, "yields"), facts="A5, KV05", headline=True, instance={"vcpus": 3},
    holds=(*RIGHT_CURSOR, "v5.3+early_cursor", "v5.3+integer_counter", "v5.3+lock_aware"),
    fails=("v6.13", "v6.13+eligibility=false"),
    why="The scan begins behind the cursor. A cursor that is not the vCPU boosted last may come back to the same few "
        "places, and whoever waits outside of the stretches that are scanned from there is never reached.")

def scan(m):
    """The inputs of a scan over any number of vCPUs, and what it is: it stops at ``target`` before it is at ``holder``.

    ``passed`` is how many it has passed; the holder is ready, out of the handler, and so never passed by.
    """
    n, cursor, holder, passed = z3.Ints("vcpus cursor holder passed")
    place = cursor + 1 + passed
    target = z3.If(place >= n, place - n, place)
    given = z3.And(n >= 2, 0 <= cursor, cursor < n, 0 <= holder, holder < n, 0 <= passed, passed < distance(n, holder,
                                                                                                         cursor))
    stored = target if m.switches["cursor"] == "index" else passed
    return {"vcpus": n, "cursor": cursor, "holder": holder, "passed": passed}, given, target, stored


def distance(n, holder, cursor):
    """How many vCPUs a scan from behind the cursor looks at until it is at the holder, who is the last of them."""
    return z3.If(holder > cursor, holder - cursor, holder - cursor + n)


def closes_in(m):
    """The steps of the proof of A5 for every number of vCPUs."""
    inputs, given, target, stored = scan(m)
    n, cursor, holder = inputs["vcpus"], inputs["cursor"], inputs["holder"]
    before, after = distance(n, holder, cursor), distance(n, holder, stored)
    return Claim({
        "what is stored is a vCPU": z3.And(0 <= stored, stored < n),
        "a boost that is not the holder's is stored nearer to the holder":
            z3.Implies(target != holder, z3.And(after < before, after >= 1)),
    }, inputs, assumptions=(given,), any_instance=True)


closer_to_the_holder = Property(
    "closer_to_the_holder", DirectedYield,
    "For any number of vCPUs: a scan that begins behind the cursor stores one that is nearer to a holder who is never "
    "passed by, unless it boosts him.",
    Lemma(closes_in), facts="A5'", holds=("base", "v5.3", "v6.12", "v6.19"), fails=("v6.13",),
    why="How far a loop has come is no place on the ring: what it stores may lie farther from the holder than before.")

tried_at_all = Property(
    "tried_at_all", DirectedYield,
    "A lock holder that was preempted in the guest's kernel gets a CPU after a bounded number of pause-loop exits.",
    WorstCase(holder_waits, "exits"), facts="KV04", instance={"vcpus": 3},
    holds=("rfc-v5", "v5.13", "v6.12", "v6.19"), fails=("v5.13+mode_unknown", "v6.12+mode_unknown"),
    why="Where the host cannot tell the mode of the guest, as with encrypted registers, a filter for vCPUs that were "
        "in the kernel lets nobody through, and the handler yields to no one.")

boosted_undisturbed = Property(
    "boosted_undisturbed", DirectedYield,
    "The same where the host takes no CPU away from guest code, so that all who wait were spinning in the handler.",
    WorstCase(holder_waits, "yields"), facts="A4, A5", instance={"vcpus": 5, "preemption": 0},
    holds=("base", "rfc-v5", "v6.13", "v6.19+eligibility=false"), fails=("v6.13+eligibility=false",),
    why="Skipping every vCPU in the handler once hides the wrong cursor, as long as everybody who waits is in it.")

round_robin = Property(
    "round_robin", DirectedYield,
    "A waiting vCPU that is never passed by gets one of any N consecutive boosts.",
    Within(lambda m: m.vcpus, holder_waits, "yields"), facts="A2, A15",
    holds=("base+early_cursor", "v5.3+early_cursor"),
    fails=("base", "v5.3", "v6.19", "v6.13+eligibility=false"),
    why="The cursor is written only when the yielder runs again, so others start from an old one, and it goes back.")

fewer_by_turns = Property(
    "fewer_by_turns", DirectedYield,
    "From a state in which nobody is in the handler, the holder is boosted within N - P yields.",
    Within(lambda m: m.vcpus - m.cpus, holder_waits, "yields"), facts="A3", instance={"preemption": 0},
    holds=("rfc-v5+early_cursor",), fails=("rfc-v5", "rfc-v1+early_cursor", "base+early_cursor"))


def boost_lands(m):
    """Who is to get a CPU waits for one."""
    return m.next == NULL or m.ready[m.next] or m.unmarked[m.next]


def boost(m):
    return m.next != NULL


lands_on_a_queue = Property(
    "lands_on_a_queue", DirectedYield,
    "A yield has an effect only on a vCPU that waits for a CPU.",
    Invariant(boost_lands, premise=boost), facts="A1", instance={"vcpus": 3, "cpus": 2},
    holds=("base", "rfc-v5", "v5.3", "v6.19"), fails=("base+no_revalidation", "rfc-v5+no_revalidation"))


def nested_holder_waits(m):
    """The holder gave its CPU away in the handler, because it spins for another lock."""
    return m.ready[m.holder] and m.in_spin_loop[m.holder]


nested_holder = Property(
    "nested_holder", DirectedYield,
    "A lock holder that is in the handler itself goes on after at most N + 1 pause-loop exits of others.",
    Within(lambda m: m.vcpus + 1, nested_holder_waits, "exits"), facts="A6", instance={"vcpus": 3, "nested": 1},
    holds=("rfc-v4+early_cursor", "rfc-v5+early_cursor"), fails=("rfc-v5+early_cursor+integer_counter",))


def straight_to_the_holder(m):
    return m.next == NULL or m.next == m.holder or not m.clean


def clean_boost(m):
    return m.next != NULL and m.clean


first_to_the_holder = Property(
    "first_to_the_holder", DirectedYield,
    "Where everybody else who waits is in the handler and was not passed by yet, the next yield goes to the holder.",
    Invariant(straight_to_the_holder, premise=clean_boost), facts="A7", instance={"vcpus": 3, "watch": 1},
    holds=("rfc-v5", "v5.3", "v6.19"), fails=("base",))


def within_budget(m):
    return not m.over_budget


def budget_used_up(m):
    """An exit has ended without a boost, as many attempts of it as may had failed."""
    return m.gave_up == m.tries


undercommit = Property(
    "undercommit", DirectedYield,
    "The handler gives up after three attempts that fail for want of a second task, as on an undercommitted host.",
    Invariant(within_budget, premise=budget_used_up), facts="A12, A13",
    instance={"vcpus": 5, "undercommitted": 1, "preemption": 0},
    holds=("v3.9", "v6.19"), fails=("rfc-v5",))


def nobody_passed_over(m):
    return not m.passed_over


def tries_left(m):
    """An exit has ended without a boost, after attempts that failed, and might have made more."""
    return m.gave_up > 0 and m.gave_up < m.tries


whole_round = Property(
    "whole_round", DirectedYield,
    "Where no yield succeeds and the budget is not used up, every vCPU that waits was tried.",
    Invariant(nobody_passed_over, premise=tries_left), facts="A11",
    instance={"vcpus": 3, "failures": 1, "preemption": 0},
    holds=("v6.19+eligibility=false",), fails=("v6.12+eligibility=false", "base+budget=true"),
    why="The second pass of the loop is left out where the last attempt of the first one gave -ESRCH.")


def flag_tells(m):
    """Who has the flag was scheduled away in the handler: nobody else is between two steps of it."""
    return all(m.ready[v] or not m.in_spin_loop[v] for v in m.vcpu)


def somebody_inside(m):
    return any(m.in_spin_loop[v] for v in m.vcpu)


flag_means_handler = Property(
    "flag_means_handler", DirectedYield,
    "in_spin_loop is set only of vCPUs that are in the handler.",
    Invariant(flag_tells, premise=somebody_inside), facts="A14", instance={"vcpus": 3},
    holds=("rfc-v4", "rfc-v5", "v5.3", "v6.19"), fails=("v5.3+flag_stays",))


def visible(m):
    """Whoever waits has the mark that the scan looks for."""
    return m.hint == "none" or all(not m.unmarked[v] for v in m.vcpu)


def somebody_waits(m):
    return any(m.ready[v] or m.unmarked[v] for v in m.vcpu)


seen_from_the_vmm = Property(
    "seen_from_the_vmm", DirectedYield,
    "A vCPU that was preempted in the VMM is a candidate.",
    Invariant(visible, premise=somebody_waits), facts="A16", instance={"vcpus": 3, "vmm": 1},
    holds=("base", "rfc-v5", "v3.9"), fails=("v3.10", "v4.14", "v5.3", "v6.12", "v6.19"),
    why="The mark is set by the preempt notifier, which is registered only inside of KVM_RUN.")

seen_when_woken = Property(
    "seen_when_woken", DirectedYield,
    "A vCPU is a candidate from the moment at which it was woken.",
    Invariant(visible, premise=somebody_waits), facts="A16", instance={"vcpus": 3, "sleeping": 1},
    holds=("base", "rfc-v5", "v3.9"), fails=("v3.10", "v5.3", "v6.12", "v6.19"),
    why="Up to 5.2 a woken vCPU has no mark until it has run; since 5.3 it gets one, a few instructions too late.")

heeded = Property(
    "heeded", DirectedYield,
    "The same as boosted, where the scheduler takes no notice of the hint (EEVDF, 6.6 to 6.13.0).",
    WorstCase(holder_waits, "yields"), facts="A5", instance={"vcpus": 3, "heeded": 0},
    fails=("base", "v5.3", "v6.12", "v6.19"),
    why="Only the caller's giving way is left: nothing makes the host run the one that the handler picked.")
