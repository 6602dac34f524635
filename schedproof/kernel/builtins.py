# SPDX-License-Identifier: GPL-2.0-only
"""The kernel's own vocabulary, with C's types: what every reader of kernel code knows.

These are macros and inline functions whose text is made for the compiler (type checks, inline assembly) or for
orderings that do not exist under sequential consistency. They are never expanded or read from the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tree_sitter import Node

from schedproof.kernel import atomics, percpu
from schedproof.kernel import parse as p
from schedproof.kernel import values as v
from schedproof.kernel.atomics import Builtin, atomic_set, count, target
from schedproof.kernel.declared import U128, Embedded
from schedproof.kernel.elements import around
from schedproof.kernel.expressions import Expressions
from schedproof.kernel.places import FieldPlace, LocalPlace
from schedproof.kernel.preprocess import Macro
from schedproof.kernel.values import Value
from schedproof.lang.ctypes import CHAR, INT, LONG, S16, UINT, ULONG, CType, pointer, usual
from schedproof.lang.syntax import Const, Free, Load, Local, Unary
from schedproof.model.domains import Bool


def _same(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``likely(x)``: the value itself."""
    if not args:
        e.fail(node, p.shown(node))
    return e.value(args[0])


def _hint(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``likely(x)``: ``__builtin_expect(!!(x), 1)``, a long."""
    count(e, node, args, 1)
    return Value(e.truth(args[0]), LONG, True)


def _expect(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``__builtin_expect(x, y)``: x as a long."""
    count(e, node, args, 2)
    return v.convert(e.value(args[0]), LONG, e.loc(node))


def _write_once(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    count(e, node, args, 2)
    place = e.place(args[0])
    with e.aside() as before:
        value = e.value(args[1])
    place = e.steady(place, before, e.loc(node))
    e.out += before
    return e.assign(place, value, e.loc(node), used)


def _type(e: Expressions, node: Node) -> CType:
    """A type given as an argument, which the parser took for an expression."""
    kind = e.declared(node, p.text(node).replace("*", " "), None)[1]
    if not isinstance(kind, CType) or "*" in p.text(node):
        e.fail(node, f"type {p.shown(node)}")
    return kind


def _choice(op: str, e: Expressions, node: Node, left: Value, right: Value, ctype: CType) -> Value:
    loc = e.loc(node)
    left = e.once(v.convert(left, ctype, loc), loc)
    right = e.once(v.convert(right, ctype, loc), loc)
    test = v.compare(op, left, right, loc).expr
    if isinstance(test, Const):
        return left if test.value else right
    return v.conditional(test, left, right, loc)


def _extreme(op: str) -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        """``max(a, b)``, ``min(a, b)``: of the common type; each argument is evaluated once."""
        count(e, node, args, 2)
        left, right = e.in_order(args)
        return _choice(op, e, node, left, right, usual(left.number, right.number))
    return lower


def _extreme3(op: str) -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        count(e, node, args, 3)
        a, b, c = e.in_order(args)
        inner = _choice(op, e, node, a, b, usual(a.number, b.number))
        return _choice(op, e, node, inner, c, usual(inner.number, c.number))
    return lower


def _extreme_t(op: str) -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        """``max_t(type, a, b)``: both are converted to the type first."""
        count(e, node, args, 3)
        ctype = _type(e, args[0])
        left, right = e.in_order(args[1:])
        return _choice(op, e, node, left, right, ctype)
    return lower


def _limit(typed: bool) -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        """``clamp(val, lo, hi)`` and ``clamp_t(type, val, lo, hi)``.

        The result with ``lo > hi`` differs between releases: the older macro is ``min(max(val, lo), hi)``, the newer
        ``val >= hi ? hi : val <= lo ? lo : val``. The tree's own text tells which one it is.
        """
        count(e, node, args, 4 if typed else 3)
        values = e.in_order(args[1:] if typed else args)
        loc = e.loc(node)
        ctype = _type(e, args[0]) if typed else usual(usual(values[0].number, values[1].number), values[2].number)
        value, low, high = (e.once(v.convert(x, ctype, loc), loc) for x in values)
        macro = e.services.sources.macro("clamp_t" if typed else "clamp", e.code.where)
        if macro is not None and "min" in macro.body.split("(")[0]:
            return _choice("<", e, node, _choice(">", e, node, value, low, ctype), high, ctype)
        inner = v.conditional(v.compare("<=", value, low, loc).expr, low, value, loc)
        test = v.compare(">=", value, high, loc).expr
        return v.conditional(test, high, inner, loc)
    return lower


def _absolute(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``abs(x)``: x is first made one of the signed type of its width; a narrow result is an int."""
    count(e, node, args, 1)
    value, loc = e.value(args[0]), e.loc(node)
    same = next((t for t in (CHAR, S16, INT, LONG) if t.bits == value.number.bits), None)
    if same is None or value.number == CHAR:             # of a plain char it would be a char again
        e.fail(node, f"abs of a {value.number}: {p.shown(node)}")
    value = e.once(v.promoted(v.convert(value, same, loc), loc), loc)
    signed = value.number
    test = v.compare("<", value, v.constant(0, INT, loc), loc).expr
    return v.conditional(test, Value(Unary("-", value.expr, loc, signed), signed), value, loc)


def _divide(dividend: CType, divisor: CType, op: str = "/") -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        """``div_u64(a, b)`` and its kin: functions, so the arguments are converted to their parameters' types."""
        count(e, node, args, 2)
        loc = e.loc(node)
        left, right = e.in_order(args)
        left, right = v.convert(left, dividend, loc), v.convert(right, divisor, loc)
        return v.convert(v.arithmetic(op, left, right, loc), dividend, loc)
    return lower


def _multiply_shift(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``mul_u64_u32_shr(a, mul, shift)`` with a product of 128 bits."""
    count(e, node, args, 3)
    loc = e.loc(node)
    a, b, shift = e.in_order(args)
    a, b = v.convert(v.convert(a, ULONG, loc), U128, loc), v.convert(v.convert(b, UINT, loc), U128, loc)
    product = v.arithmetic("*", a, b, loc)
    return v.convert(v.arithmetic(">>", product, v.convert(shift, UINT, loc), loc), ULONG, loc)


def _warn(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``WARN_ON(x)``: no effect but that of evaluating x; the value is ``unlikely(x)``."""
    if not args:
        e.fail(node, p.shown(node))
    return Value(e.truth(args[0]), LONG, True)


def _nothing(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """Barriers, lock assertions, compile-time checks: nothing to a run under sequential consistency."""
    return Value(Const(0, e.loc(node)), None)


def _static_key(name_of: Callable[[str], str]) -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        """A static key, whose position the model declares."""
        count(e, node, args, 1)
        name = name_of(p.text(args[0]).replace(" ", "").lstrip("&"))
        found = e.words.vocabulary.static_keys.get(name)
        if found is None:
            e.fail(node, f"static key {name}, which the model does not declare")
        return Value(Const(found[0], e.loc(node)), INT, True)
    return lower


def _enabled(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``IS_ENABLED(CONFIG_X)``."""
    count(e, node, args, 1)
    option = p.text(args[0])
    config = e.services.sources.config
    config.consulted.add(option)
    return Value(Const(config.options.get(option) == "y", e.loc(node)), INT, True)


def _refused(why: str) -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        e.fail(node, f"{why}: {p.shown(node)}")
    return lower


def _container(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``container_of(ptr, struct s, member)``: a pointer into an object is the object's own number."""
    count(e, node, args, 3)
    value, struct, member = e.value(args[0]), p.text(args[1]).replace("_", " ", 1), p.text(args[2])
    if value.inner:
        fine = (value.owner, value.inner) == (struct, member)
    else:
        # A pointer that came from outside: right when it points to what that member is, and to nothing else.
        fine = (value.ctype is not None and value.is_pointer and not e.words.deals_with(value.ctype.struct)
                and e.memory.declared_type(FieldPlace(value.expr, struct, member), e.loc(node))
                == Embedded(value.ctype.struct))
        if fine and isinstance(value.expr, Local):
            e.lies_in(value.expr.name, struct, member)
    if not fine or struct not in e.words.universes:
        outer = around(e, value, struct, member, e.loc(node))
        if outer is not None:
            return outer
        e.fail(node, f"container_of: {p.shown(node)}")
    return Value(value.expr, pointer(struct))


def _object(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``__object_of(p, i)``: object number i of the struct that p points to (made by the iterator macros below)."""
    place, index = e.place(args[0]), e.value(args[1])
    if not isinstance(place, LocalPlace) or place.ctype.struct not in e.words.universes:
        e.fail(node, "iteration with something that is no local pointer to an object of the model")
    return Value(v.convert(index, LONG, e.loc(node)).expr, place.ctype)


def _vcpu_array(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``xa_load(&kvm->vcpu_array, i)``: vCPU number i, NULL from ``online_vcpus`` on."""
    count(e, node, args, 2)
    loc = e.loc(node)
    place = target(e, args[0])
    if isinstance(place, LocalPlace) or place.path != "vcpu_array":
        e.fail(node, f"xarray: {p.shown(node)}")
    index = e.once(v.convert(e.value(args[1]), ULONG, loc), loc)
    online = e.memory.load(type(place)(place.obj, place.owner, "online_vcpus"), loc)
    inside = v.compare("<", index, online, loc).expr
    return v.conditional(inside, Value(index.expr, pointer("struct kvm_vcpu")), v.null(loc), loc)


def _no_speculation(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``array_index_nospec(i, size)``: i where it is below size, else 0."""
    count(e, node, args, 2)
    loc = e.loc(node)
    index, size = e.in_order(args)
    index = e.once(index, loc)
    return v.conditional(v.compare("<", index, size, loc).expr, index, v.constant(0, INT, loc), loc)


def _last_set(ctype: CType) -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        """``fls(x)``: the number of the highest bit that is set, counted from 1; 0 for 0. In C it is assembly."""
        count(e, node, args, 1)
        loc = e.loc(node)
        value = e.once(v.convert(e.value(args[0]), ctype, loc), loc)

        def between(low: int, high: int) -> Value:
            """The result where it is known to be in that range."""
            if low == high:
                return v.constant(low, INT, loc)
            middle = (low + high) // 2
            test = v.compare("<", value, v.constant(1 << middle, ctype, loc), loc).expr
            if isinstance(test, Const):
                return between(low, middle) if test.value else between(middle + 1, high)
            return v.conditional(test, between(low, middle), between(middle + 1, high), loc)
        return between(0, ctype.bits)
    return lower


# ------------------------------------------------------------------------------------------- lists and bits
def _list_empty(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``list_empty(&x->list)`` of a list head that the model declares as a Bool: whether there is an entry."""
    count(e, node, args, 1)
    place, loc = target(e, args[0]), e.loc(node)
    if isinstance(place, LocalPlace):
        e.fail(node, f"list: {p.shown(node)}")
    name, declared = e.words.fields.get((place.owner, place.path), ("", None))
    if not isinstance(declared, Bool) or e.memory.declared_type(place, loc) != Embedded("struct list_head"):
        e.fail(node, f"list: {p.shown(node)}")
    return Value(Unary("not", Load(name, e.memory.index(place, declared), loc), loc), INT, True)


def _one_bit(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``BIT(nr)``."""
    count(e, node, args, 1)
    return v.arithmetic("<<", v.constant(1, ULONG, e.loc(node)), e.value(args[0]), e.loc(node))


def _mask(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``GENMASK(high, low)``: ones from bit ``low`` to bit ``high``, both constants."""
    count(e, node, args, 2)
    loc = e.loc(node)
    high, low = (x.expr.value if isinstance(x.expr, Const) else -1 for x in e.in_order(args))
    if not 0 <= low <= high < 64:
        e.fail(node, p.shown(node))
    return v.constant((1 << (high + 1)) - (1 << low), ULONG, loc)


def _bit(change: str) -> Builtin:
    def lower(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
        """``test_bit(nr, addr)``, ``set_bit``, ``clear_bit`` on a single word; bits behind it are not modelled."""
        count(e, node, args, 2)
        loc = e.loc(node)
        number = e.keep(v.convert(e.value(args[0]), LONG, loc), loc)
        place = target(e, args[1])
        word = e.memory.load(place, loc)
        if word.is_pointer or word.number.bits != 64:
            e.fail(node, f"bit of what is no long word: {p.shown(node)}")
        inside = v.compare("<", v.convert(number, ULONG, loc), v.constant(64, ULONG, loc), loc).expr
        beyond = Value(Free("a bit behind the word", word.number, loc), word.number)
        if not change:
            shifted = v.arithmetic(">>", word, number, loc)
            value = v.arithmetic("&", shifted, v.constant(1, word.number, loc), loc)
            return v.compare("!=", v.conditional(inside, value, beyond, loc), v.constant(0, INT, loc), loc)
        mask = v.arithmetic("<<", v.constant(1, ULONG, loc), number, loc)
        if change == "&":
            mask = v.arithmetic("^", mask, v.constant(-1, ULONG, loc), loc)
        e.out += e.memory.store(place, v.conditional(inside, v.arithmetic(change, word, mask, loc), beyond, loc), loc)
        return Value(Const(0, loc), None)
    return lower


def _swap(e: Expressions, node: Node, args: Sequence[Node], used: bool) -> Value:
    """``swap(a, b)``."""
    count(e, node, args, 2)
    loc = e.loc(node)
    left, right = e.place(args[0]), e.place(args[1])
    kept = e.keep(e.memory.load(left, loc), loc)
    e.out += e.memory.store(left, e.memory.load(right, loc), loc)
    e.out += e.memory.store(right, kept, loc)
    return Value(Const(0, loc), None)


def _families() -> dict[str, Builtin]:
    """Names that have the same meaning."""
    found: dict[str, Builtin] = {}
    for name in ("barrier", "smp_mb", "smp_rmb", "smp_wmb", "cpu_relax", "smp_mb__before_atomic",
                 "smp_mb__after_atomic", "smp_mb__after_spinlock", "mb", "rmb", "wmb", "might_sleep", "cond_resched",
                 "lockdep_assert_held", "lockdep_assert_held_write", "lockdep_assert_rq_held", "assert_clock_updated",
                 "lockdep_assert_irqs_disabled", "lockdep_assert_preemption_disabled", "lockdep_assert_cpus_held",
                 "assert_list_leaf_cfs_rq", "BUILD_BUG_ON", "BUILD_BUG_ON_MSG", "static_assert", "prefetch",
                 "prefetchw",
                 "rcu_read_lock", "rcu_read_unlock", "instrumentation_begin", "instrumentation_end", "kcsan_mb"):
        found[name] = _nothing
    for name in ("WARN_ON", "WARN_ON_ONCE", "SCHED_WARN_ON", "WARN", "WARN_ONCE", "BUG_ON", "VM_WARN_ON",
                 "VM_WARN_ON_ONCE", "KVM_BUG_ON", "WARN_ON_SMP"):
        found[name] = _warn
    key = _static_key(lambda name: name)
    for name in ("static_key_false", "static_key_true", "static_branch_likely", "static_branch_unlikely",
                 "static_key_enabled", "static_branch_maybe", "sched_feat"):
        found[name] = key
    return found


BUILTINS: dict[str, Builtin] = {
    **_families(), **atomics.BUILTINS, **percpu.BUILTINS,
    "READ_ONCE": _same, "smp_load_acquire": lambda e, n, a, u: e.memory.load(target(e, a[0]), e.loc(n)),
    "rcu_dereference": _same, "rcu_dereference_raw": _same, "rcu_dereference_check": _same, "data_race": _same,
    "WRITE_ONCE": _write_once, "rcu_assign_pointer": _write_once, "RCU_INIT_POINTER": _write_once,
    "smp_store_release": atomic_set, "smp_store_mb": _write_once,
    "likely": _hint, "unlikely": _hint, "__builtin_expect": _expect,
    "max": _extreme(">"), "min": _extreme("<"), "max_t": _extreme_t(">"), "min_t": _extreme_t("<"),
    "max3": _extreme3(">"), "min3": _extreme3("<"), "clamp": _limit(False), "clamp_t": _limit(True),
    "GENMASK": _mask, "GENMASK_ULL": _mask, "BIT": _one_bit, "BIT_ULL": _one_bit,
    "typecheck": lambda e, n, a, u: v.constant(1, INT, e.loc(n)), "abs": _absolute, "IS_ENABLED": _enabled,
    "div_u64": _divide(ULONG, UINT), "div64_u64": _divide(ULONG, ULONG), "div64_ul": _divide(ULONG, ULONG),
    "div_s64": _divide(LONG, INT), "div64_s64": _divide(LONG, LONG), "div64_long": _divide(LONG, LONG),
    "mul_u64_u32_shr": _multiply_shift, "fls": _last_set(UINT), "fls64": _last_set(ULONG),
    "container_of": _container, "offsetof": _refused("offsetof"), "swap": _swap,
    "list_empty": _list_empty, "list_empty_careful": _list_empty, "test_bit": _bit(""), "set_bit": _bit("|"),
    "clear_bit": _bit("&"), "__set_bit": _bit("|"), "__clear_bit": _bit("&"),
    "xa_load": _vcpu_array, "array_index_nospec": _no_speculation, "__object_of": _object,
}

# Iterator macros over the kernel's containers, as loops over the model's objects. They take the place of the tree's.
# An xarray's iterator goes on behind the index as the body left it, as this loop does.
ITERATORS: dict[str, Macro] = {
    "kvm_for_each_vcpu": Macro(
        "kvm_for_each_vcpu", ("idx", "vcpup", "kvm"),
        "for ((idx) = 0; (idx) < atomic_read(&(kvm)->online_vcpus) && "
        "((vcpup) = __object_of(vcpup, idx), 1); (idx)++)", "", 0)}

# Words that macro expansion leaves alone although a header may define them.
KEPT = frozenset(BUILTINS) | {"NULL", "true", "false", "fallthrough", "sizeof", "typeof", "__typeof__",
                              "__unqual_scalar_typeof", "typeof_unqual", "static_call"}
