/* Short fills and copies. WORD is an unsigned type with the size of an element.

   Without GAPS the arrays are in one piece of n elements. With it, elements lie in three dimensions,
   nx * ny * get_global_size(2) of them, each so many words behind the one before it along an axis. */

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

#else

kernel void fill(global WORD *target, WORD value, uint nx, uint ny, int tx, int ty, int tz)
{
    const size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x < nx && y < ny)
        target[x * tx + y * ty + z * tz] = value;
}

kernel void copy(global WORD *target, global const WORD *source, uint nx, uint ny,
                 int tx, int ty, int tz, int sx, int sy, int sz)
{
    const size_t x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
    if (x < nx && y < ny)
        target[x * tx + y * ty + z * tz] = source[x * sx + y * sy + z * sz];
}

#endif
