/* Fills, copies and writes. WORD is an unsigned type with the size of an element, or of a part of one.

   Without GAPS the arrays are in one piece of n words. With it, words lie along axes, each so many
   words behind the one before it: along three of them, or with MORE along six, where the last four
   share an axis of the launch. A source begins `start` words behind its first byte, and may go
   backwards. A write brings the words along, up to 128 bytes. */

#ifndef GAPS

kernel void fill(global WORD *target, WORD value, uint n)
{
    const uint i = get_global_id(0);
    if (i < n)
        target[i] = value;
}

kernel void copy(global WORD *target, global const WORD *source, uint n)
{
    const uint i = get_global_id(0);
    if (i < n)
        target[i] = source[i];
}

kernel void write(global WORD *target, ulong16 words, uint n)
{
    union { ulong16 all; WORD each[sizeof(ulong16) / sizeof(WORD)]; } from;
    from.all = words;
    const uint i = get_global_id(0);
    if (i < n)
        target[i] = from.each[i];
}

#else

kernel void fill(global WORD *target, WORD value, long nx, long ny, long tx, long ty, long tz)
{
    const long x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x < nx && y < ny)
        target[x * tx + y * ty + z * tz] = value;
}

#ifndef MORE

kernel void copy(global WORD *target, global const WORD *source, long start, long nx, long ny,
                 long tx, long ty, long tz, long sx, long sy, long sz)
{
    const long x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x < nx && y < ny)
        target[x * tx + y * ty + z * tz] = source[start + x * sx + y * sy + z * sz];
}

#else

kernel void copy(global WORD *target, global const WORD *source, long start, long nx, long ny,
                 long nz, long nu, long nv,
                 long tx, long ty, long tz, long tu, long tv, long tw,
                 long sx, long sy, long sz, long su, long sv, long sw)
{
    const long x = get_global_id(0), y = get_global_id(1), all = get_global_id(2);
    const long z = all % nz, u = all / nz % nu, v = all / nz / nu % nv, w = all / nz / nu / nv;
    if (x < nx && y < ny)
        target[x * tx + y * ty + z * tz + u * tu + v * tv + w * tw] =
            source[start + x * sx + y * sy + z * sz + u * su + v * sv + w * sw];
}

#endif
#endif
