# SPDX-License-Identifier: GPL-2.0-only
"""Reading real kernel trees. Their text stays where it is: these tests hold names only."""

from __future__ import annotations

import pytest

from schedproof.errors import NotExecutable
from schedproof.kernel import Config, Reader, Tree, Vocabulary, read
from schedproof.kernel.patch import apply, parse_patches
from schedproof.kernel.touched import touched_functions
from schedproof.lang import syntax as s
from schedproof.lang.ctypes import BOOL, INT, LONG, ULONG, pointer
from schedproof.lang.interpret import run_function
from schedproof.model.domains import Bool, Constant, Enum, Link, Object, Pointer, Range, Values

FAIR = "kernel/sched/fair.c"


class Groups:
    entity = Object("struct sched_entity", "gA", "gB")
    cfs_rq = Object("struct cfs_rq", "qA", "qB", "qVM")
    task_group = Object("struct task_group", "A", "B", "VM")
    weight = Values({2: "MIN", 1 << 20: "NICE_0"}, per=entity, c="load.weight")
    on_rq = Bool(per=entity, c="on_rq")
    load = Values({0: "none", 1 << 20: "NICE_0"}, per=cfs_rq, c="load.weight")
    load_avg = Values({0: "none", 1024: "full"}, per=cfs_rq, c="avg.load_avg")
    throttle_count = Range(0, 1, per=cfs_rq, c="throttle_count")
    shares = Values({1 << 20: "NICE_0"}, per=task_group, c="shares")
    tg_load_avg = Constant(0, per=task_group, c="load_avg")
    contribution = Constant(0, per=cfs_rq, c="tg_load_avg_contrib")
    my_q = Link(per=entity, target=cfs_rq, to={"gA": "qA", "gB": "qB"}, c="my_q")
    queue_of = Link(per=entity, target=cfs_rq, to={"gA": "qVM", "gB": "qVM"}, c="cfs_rq")
    tg = Link(per=cfs_rq, target=task_group, to={"qA": "A", "qB": "B", "qVM": "VM"}, c="tg")
    vocabulary = Vocabulary(callees={"reweight_entity": "places the entity"},
                            static_keys={"__cfs_bandwidth_used": (True, "a quota is set")})


class Reweighted(Groups):
    curr = Pointer(Groups.entity, per=Groups.cfs_rq, c="curr")
    vocabulary = Vocabulary(
        callees=dict.fromkeys(("update_curr", "avg_vruntime", "reweight_eevdf", "__dequeue_entity",
                               "__enqueue_entity"), "time and place"),
        ignore={(struct, path): "not modelled" for struct in ("struct sched_entity", "struct cfs_rq")
                for path in ("avg", "vlag", "load.inv_weight")})


class Guests:
    vcpu = Object("struct kvm_vcpu", "v0", "v1", "v2")
    ready = Bool(per=vcpu, c="ready")
    preempted = Bool(per=vcpu, c="preempted")
    in_spin_loop = Bool(per=vcpu, c="spin_loop.in_spin_loop")
    eligible = Bool(per=vcpu, c="spin_loop.dy_eligible")
    cursor = Range(0, 2, c="struct kvm.last_boosted_vcpu")
    online = Constant(3, c="struct kvm.online_vcpus")
    vocabulary = Vocabulary(callees=dict.fromkeys((
        "kvm_vcpu_yield_to", "kvm_arch_vcpu_in_kernel", "kvm_arch_vcpu_preempted_in_kernel", "vcpu_dy_runnable",
        "kvm_arch_dy_has_pending_interrupt", "kvm_vcpu_is_blocking"), "outside"))


class Waiters:
    node = Object("struct pv_node", "n0", "n1")
    state = Enum("RUN", "HALT", "HASH", meaning={"RUN": (0, 0), "HALT": (1, 1), "HASH": (2, 2)}, per=node, c="state")
    locked = Bool(per=node, c="mcs.locked")
    vocabulary = Vocabulary(callees={"pv_wait@struct pv_node.state": "halts"},
                            noop={"lockevent_inc": "a counter", "lockevent_cond_inc": "a counter"})


Waiters.state.code_of = {"RUN": 0, "HALT": 1, "HASH": 2}


def loads(program: s.Program) -> set[str]:
    return {e.var for x in s.statements(program.body) for e in s.expressions(x) if isinstance(e, s.Load)}


def stores(program: s.Program) -> set[str]:
    return {x.var for x in s.statements(program.body) if isinstance(x, s.Store)}


def frees(program: s.Program) -> set[str]:
    return {e.why for x in s.statements(program.body) for e in s.expressions(x) if isinstance(e, s.Free)}


def test_update_cfs_group(real_tree: Tree):
    config = Config()
    found = read(real_tree, "update_cfs_group", FAIR, config, Groups)
    assert set(found) == {"update_cfs_group", "calc_group_shares", "throttled_hierarchy", "cfs_bandwidth_used",
                          "group_cfs_rq", "cfs_rq_of"}
    top = found["update_cfs_group"]
    assert top.types == (pointer("struct sched_entity"),) and top.result is None and top.loc.file == FAIR
    assert s.calls(top.body) == {"group_cfs_rq", "throttled_hierarchy", "calc_group_shares", "cfs_rq_of",
                                 "reweight_entity"}
    call = next(e for x in s.statements(top.body) for e in s.expressions(x)
                if isinstance(e, s.Call) and e.name == "reweight_entity")
    assert len(call.args) == 3 and isinstance(call.args[2], s.Cast) and call.args[2].ctype == ULONG
    assert "load" in loads(top) if real_tree.version() >= (6, 2, 0) else not loads(top)
    assert found["group_cfs_rq"].loc.file == "kernel/sched/sched.h"
    assert found["throttled_hierarchy"].result == INT and found["cfs_bandwidth_used"].result == BOOL
    assert {"CONFIG_SMP", "CONFIG_FAIR_GROUP_SCHED", "CONFIG_CFS_BANDWIDTH"} <= config.consulted
    assert not any(frees(p) for p in found.values())


def test_places_are_those_of_the_tree(real_tree: Tree):
    lines = real_tree.text(FAIR).split("\n")
    for program in read(real_tree, "update_cfs_group", FAIR, Config(), Groups).values():
        text = real_tree.text(program.loc.file).split("\n") if program.loc.file != FAIR else lines
        assert f"{program.name}(" in text[program.loc.line - 1]
        for statement in s.statements(program.body):
            if isinstance(statement, s.Return):
                assert "return" in text[statement.loc.line - 1]
            for e in s.expressions(statement):
                if isinstance(e, s.Call):
                    assert e.name in text[e.loc.line - 1]


def test_calc_group_shares(real_tree: Tree):
    reader = Reader(real_tree, Config(), Groups)
    program = reader.read("calc_group_shares", FAIR)
    assert program.result == LONG
    assert loads(program) == {"tg", "shares", "load", "load_avg", "tg_load_avg", "contribution"}
    assert {"scale_load_down", "MIN_SHARES", "SCHED_FIXEDPOINT_SHIFT"} <= reader.macros["calc_group_shares"]
    for statement in s.statements(program.body):
        for e in s.expressions(statement):
            if isinstance(e, s.Binary) and e.op in ("+", "-", "*", "/", ">>"):
                assert e.ctype in (LONG, ULONG)


@pytest.mark.parametrize(("shares", "load", "average", "total", "own", "expected"), [
    (1 << 20, 1 << 20, 1024, 0, 0, 1 << 20), (1 << 20, 1 << 20, 0, 1024, 0, 1 << 19), (1 << 20, 0, 0, 0, 0, 2),
    (1 << 20, 1, 0, 1022, 0, (1 << 20) * 2 // 1024), (1024, 1 << 20, 9, 5000, 1000, 1024 * 1024 // 5024)])
def test_calc_group_shares_counts(real_tree: Tree, shares: int, load: int, average: int, total: int, own: int,
                                  expected: int):
    program = read(real_tree, "calc_group_shares", FAIR, Config(), Groups)["calc_group_shares"]
    values = {"shares": shares, "load": load, "load_avg": average, "tg_load_avg": total, "contribution": own, "tg": 0}
    plain = program.with_body(tuple(_replaced(x, values) for x in program.body))
    assert run_function({"calc_group_shares": plain}, "calc_group_shares", [0]) == expected


def _replaced(node, values):
    """The same tree with each read of the state replaced by a number."""
    from dataclasses import fields, replace
    if isinstance(node, s.Load):
        return s.Const(values[node.var], node.loc, node.ctype)
    if isinstance(node, tuple):
        return tuple(_replaced(x, values) for x in node)
    if isinstance(node, s.Expr | s.Stmt):
        return replace(node, **{f.name: _replaced(getattr(node, f.name), values) for f in fields(node)
                                if isinstance(getattr(node, f.name), s.Expr | tuple)})
    return node


def test_reweight_entity(real_tree: Tree):
    found = read(real_tree, "reweight_entity", FAIR, Config(), Reweighted)
    assert {"update_load_add@struct cfs_rq.load", "update_load_sub@struct cfs_rq.load",
            "update_load_set@struct sched_entity.load"} <= set(found)
    assert stores(found["update_load_set@struct sched_entity.load"]) == {"weight"}
    assert stores(found["update_load_add@struct cfs_rq.load"]) == {"load"}
    assert "update_curr" in s.calls(found["reweight_entity"].body)


def test_kvm_vcpu_on_spin(real_tree: Tree):
    found = read(real_tree, "kvm_vcpu_on_spin", "virt/kvm/kvm_main.c", Config(), Guests)
    assert set(found) == {"kvm_vcpu_on_spin", "kvm_vcpu_eligible_for_directed_yield", "kvm_vcpu_set_in_spin_loop",
                          "kvm_vcpu_set_dy_eligible"}
    top = found["kvm_vcpu_on_spin"]
    assert stores(top) == {"cursor"} and {"cursor", "ready", "preempted", "online"} <= loads(top)
    assert top.types == (pointer("struct kvm_vcpu"), BOOL)


def test_pv_wait(real_tree: Tree):
    file = "kernel/locking/qspinlock_paravirt.h"
    found = read(real_tree, "pv_wait_node", file, Config(), Waiters)
    assert set(found) == {"pv_wait_node", "pv_wait_early"} and stores(found["pv_wait_node"]) == {"state"}
    assert found["pv_wait_early"].result == BOOL


def test_what_a_model_lacks_is_named(real_tree: Tree):
    with pytest.raises(NotExecutable, match=r"kernel/sched/\S+:\d+: cannot execute field \S+ of struct \S+") as caught:
        read(real_tree, "update_curr", FAIR, Config(), Groups)
    assert caught.value.line > 0 and real_tree.exists(caught.value.file)


def test_the_configuration_selects(real_tree: Tree):
    config = Config({"CONFIG_64BIT": "y", "CONFIG_SMP": "y"})
    assert read(real_tree, "update_cfs_group", FAIR, config, Groups)["update_cfs_group"].body == ()


def test_edit_by_program(real_tree: Tree):
    """A patch made from the tree itself: what it touches, and that the patched side is read."""
    old = real_tree.text(FAIR)
    lines = old.split("\n")
    line = read(real_tree, "throttled_hierarchy", FAIR, Config(), Groups)["throttled_hierarchy"].body[-1].loc.line
    begin = line - 3
    context = lines[begin - 1:line + 2]
    body = "".join(f" {x}\n" if i != 3 else f"-{x}\n+\treturn 0; /* never */\n" for i, x in enumerate(context))
    text = f"--- a/{FAIR}\n+++ b/{FAIR}\n@@ -{begin},{len(context)} +{begin},{len(context)} @@\n{body}"
    after = apply(real_tree, parse_patches(text))
    found = touched_functions(real_tree, after, FAIR)
    assert found.changed == {"throttled_hierarchy"} and not found.outside_changed
    assert "throttle_count" not in loads(read(after, "throttled_hierarchy", FAIR, Config(), Groups)[
        "throttled_hierarchy"])


def test_every_function_is_read_or_named(real_tree: Tree):
    """No function of the scheduler makes the reader fall over: it is read, or the reason has a place."""
    from schedproof.errors import SchedproofError
    from schedproof.kernel.source import sources
    config = Config()
    reader = Reader(real_tree, config, Groups)
    names = [n for n in sources(real_tree, config).unit(FAIR).functions if n][::8]
    done = 0
    for name in names:
        try:
            reader.read(name, FAIR)
            done += 1
        except SchedproofError as error:
            assert "\n" not in str(error)
    assert done >= 3
