"""OpenCL C that compares an access with limits, and notes one that is elsewhere (a *stray*).

Input: the parameters with limits, and the constants of the program. Output: the functions that a
watched kernel calls for each access, and where their notes are. Limits are rectangles of bytes from
a pointer on (start, pitch, rows, width), two for each parameter: what may be read, and what may be
written.

The first `int` of the notes becomes one after a stray. That is all that a watched launch needs, and
it goes on as the kernel itself would. In the two modes of a search the access goes to spare bytes
instead, so that no other memory changes. `FIND` keeps the lowest stray byte of each parameter and
constant, read and written. `WHO` keeps the first work-item that touches one of these bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from string import Template

FLAG, MODE, SIDE, BYTE, ITEM, LOWEST = range(6)
"""Places in the notes of a search. `SIDE`, `BYTE`: which byte `WHO` asks for. `ITEM`: the answer.
From `LOWEST` on: the lowest stray of each side, where a parameter has two: read, written. Behind
the parameters come the constants of the program."""
WATCH, FIND, WHO = range(3)
"""Modes."""
NONE = 2**31 - 1
"""No byte and no work-item."""
FAR = -(2**31), NONE - 1
"""Stand for all bytes that are further from a pointer than an `int` tells."""

READ, WRITTEN, CONSTANT = 1, 2, 4
"""What an access does, as bits, and whether it is to constant memory, which has spare bytes of its
own."""

SPARE = 1024
"""The largest access that goes to spare bytes instead."""
_SPARE_INTS, _LEAD = 3 * SPARE // 4, 32
"""The spare bytes are in the middle of these, since an index of whole vectors may be less than one
away. They begin at a multiple of the largest alignment behind the notes."""

_HELPERS = Template("""
__constant ulong16 acs__zeros[2 * $SPARE / 128] = {(ulong16)(0)};
int acs__inside(ulong at, long size, ulong base, long4 limit)
{
  long d = (long)(at - base) - limit.s0;
  if (d < 0) return 0;
  if (limit.s2 > 1) {
    long row = d / limit.s1;
    if (row >= limit.s2) return 0;
    d -= row * limit.s1;
  }
  return d <= limit.s3 - size;
}
int acs__in_row(ulong at, long size, ulong base, long4 limit)
{
  long d = (long)(at - base) - limit.s0;
  return limit.s2 == 1 && d >= 0 && d <= limit.s3 - size;
}
long acs__far(ulong at, ulong base, long4 limit)
{
  long d = (long)(at - base) - limit.s0, last = (limit.s2 - 1) * limit.s1 + limit.s3;
  return d < 0 ? -d : d < last ? 0 : d - last + 1;
}
__attribute__((noinline))
ulong acs__search(ulong at, long least, int way, int own $parameters)
{
  int reads = !(way & $READ), writes = !(way & $WRITTEN), side = own;
  ulong base = 0;
  if (own < 0) {
    $search
    long nearest = LONG_MAX, far;
    $nearest
  } else {
    $own
  }
  if (reads && writes) return at;
  long d = (long)(at - base);
  int byte = d < INT_MIN ? INT_MIN : d >= $NONE ? $NONE - 1 : (int)d;
  int read = 2 * side, written = read + 1;
  if (acs__stray[$MODE] == $FIND) {
    if (!reads) atomic_min(acs__stray + $LOWEST + read, byte);
    if (!writes) atomic_min(acs__stray + $LOWEST + written, byte);
  } else if (byte == acs__stray[$BYTE]) {
    int asked = acs__stray[$SIDE];
    if ((!reads && asked == read) || (!writes && asked == written))
      atomic_min(acs__stray + $ITEM, acs__item);
  }
  if (least > $SPARE) return at;
  if (way & $CONSTANT) return (ulong)&acs__zeros[$SPARE / 128];
  return ((ulong)(acs__stray + $spare) & ~(ulong)127) + $SPARE;
}
__attribute__((noinline))
ulong acs__elsewhere(ulong at, long size, long least, int way, int own $parameters)
{
  int reads = !(way & $READ), writes = !(way & $WRITTEN);
  if (own < 0 || acs__stray[$MODE] == $WATCH) {
    $also
    if (reads && writes) return at;
  }
  if (acs__stray[$MODE] != $WATCH) return acs__search(at, least, way, own $given);
  atomic_xchg(acs__stray, 1);
  return at;
}
ulong acs__at(
  ulong at, long size, long least, int way, int own, ulong base, long4 read, long4 written
  $parameters)
{
  int reads = !(way & $READ) || acs__in_row(at, size, base, read);
  int writes = !(way & $WRITTEN) || acs__in_row(at, size, base, written);
  return reads && writes ? at : acs__elsewhere(at, size, least, way, own $given);
}
""")
"""The limits of the parameter that a pointer probably comes from are compared first, then all. What
is rarely needed is called, since compilers take minutes for a large kernel that has it everywhere.
Nothing there asks for a work-item's number: PoCL would then put it everywhere all the same."""

_NUMBER = Template("""
int acs__number()
{
  ulong item = get_global_id(2) - get_global_offset(2);
  item = item * get_global_size(1) + get_global_id(1) - get_global_offset(1);
  item = item * get_global_size(0) + get_global_id(0) - get_global_offset(0);
  return item < $NONE ? (int)item : $NONE;
}
""").substitute(globals())
"""Numbers a work-item."""

_INSIDE = """
    reads = reads || acs__inside(at, {size}, acs__base_{n}, acs__read_{n});
    writes = writes || acs__inside(at, {size}, acs__base_{n}, acs__written_{n});
"""
_NEAREST = """
    if ({in_space}) {{
    far = acs__far(at, acs__base_{n}, acs__read_{n});
    far = min(far, acs__far(at, acs__base_{n}, acs__written_{n}));
    if (far < nearest) {{ nearest = far; side = {side}; base = acs__base_{n}; }} }}
"""
_OWN = "if (own == {side}) {{ base = {base}; {inside} }}"
_KNOWN = """
    if ((ulong)(at - (ulong)&{name}) + {size} <= sizeof({name})) return at;
"""
_NEAREST_CONSTANT = """
    if (way & {CONSTANT}) {{
    far = acs__far(at, (ulong)&{name}, (long4)(0, 0, 1, sizeof({name})));
    if (far < nearest) {{ nearest = far; side = {side}; base = (ulong)&{name}; }} }}
"""


def helpers(
    limited: Sequence[int], constant: Collection[int], parameters: str, given: str,
    variables: Sequence[str],
) -> str:  # fmt: skip
    """Return the functions for a kernel. `limited`: its parameters with limits, of which some are
    `constant`. `parameters`: what each of its helpers is given for them, with types, and `given`
    without. `variables`: constants of the program, which it may read."""
    inside = [_INSIDE.format(n=n, size="least") for n in limited]
    known = [_KNOWN.format(name=name, size="least") for name in variables]
    bases = [f"acs__base_{n}" for n in limited] + [f"(ulong)&{name}" for name in variables]
    own = [
        _OWN.format(side=side, base=base, inside=one)
        for side, (base, one) in enumerate(zip(bases, inside + known, strict=True))
    ]
    nearest = [
        _NEAREST.format(n=n, side=side, in_space=f"{'!' * (n not in constant)}(way & {CONSTANT})")
        for side, n in enumerate(limited)
    ]
    nearest += [
        _NEAREST_CONSTANT.format(name=name, side=side, CONSTANT=CONSTANT)
        for side, name in enumerate(variables, len(limited))
    ]
    also = [_INSIDE.format(n=n, size="size") for n in limited]
    also += [_KNOWN.format(name=name, size="size") for name in variables]
    return _NUMBER + _HELPERS.substitute(
        globals(),
        parameters=parameters,
        given=given,
        search="".join([*known, *inside]),
        nearest="".join(nearest),
        own=" ".join(own),
        also="".join(also),
        spare=LOWEST + 2 * len(own) + _LEAD,
    )


def ints_of(sides: int) -> int:
    """Return how many `int` the notes of a search have, for so many parameters with limits and
    constants of the program."""
    return LOWEST + 2 * sides + _LEAD + _SPARE_INTS
