/* Programs whose work-items find work of uneven size: neighbours, pixels, rows, candidates.

   Each gives it away with ACS_SPAWN. Where that is a loop they are the flat programs. All compute in
   integers. Values that many items write are added, or are the least or the greatest, so any order of
   items has the same result. */

#include <acs_spawn.h>

kernel void restore(global const int *from, global int *to) { to[get_global_id(0)] = from[get_global_id(0)]; }

/* ---- graphs by rows: the neighbours of v are to[row[v]] .. to[row[v + 1] - 1] ------------------- */

void visit(uint item, global const int *to, global int *level, int first, int next) {
    atomic_cmpxchg(&level[to[first + (int)item]], -1, next);
}
kernel void search(global const int *row, global const int *to, global int *level, int now) {
    const int from = get_global_id(0), first = row[from];
    if (level[from] == now)
        ACS_SPAWN(visit, (uint)(row[from + 1] - first), to, level, first, now + 1);
}

void relax(uint item, global const int *to, global const int *weight, global int *distance, int first, int mine) {
    atomic_min(&distance[to[first + (int)item]], mine + weight[first + (int)item]);
}
kernel void shorten(global const int *row, global const int *to, global const int *weight,
                    global int *distance, global int *seen) {
    const int from = get_global_id(0), first = row[from], mine = distance[from];
    if (mine < seen[from]) {
        seen[from] = mine;
        ACS_SPAWN(relax, (uint)(row[from + 1] - first), to, weight, distance, first, mine);
    }
}

void rival(uint item, global const int *to, global const int *colour, global const int *rank,
           global int *beaten, int first, int from, int now) {
    const int other = to[first + (int)item];
    if (colour[other] == 0 && rank[other] > rank[from])
        atomic_max(&beaten[from], now);
}
kernel void contend(global const int *row, global const int *to, global const int *colour,
                    global const int *rank, global int *beaten, int now) {
    const int from = get_global_id(0), first = row[from];
    if (colour[from] == 0)
        ACS_SPAWN(rival, (uint)(row[from + 1] - first), to, colour, rank, beaten, first, from, now);
}
kernel void colour_rest(global int *colour, global const int *beaten, int now) {
    const int at = get_global_id(0);
    if (colour[at] == 0 && beaten[at] != now)
        colour[at] = now;
}

/* ---- pictures and grids ------------------------------------------------------------------------ */

/* Mandelbrot's set in fixed point, 26 bits behind the point. */
void pixel(uint item, global int *out, uint side, uint tile, uint at, int most) {
    const uint wide = side / tile, x = at % wide * tile + item % tile, y = at / wide * tile + item / tile;
    const long a = ((long)x * 3 << 26) / (int)side - ((long)2 << 26);
    const long b = ((long)y * 2 << 26) / (int)side - ((long)1 << 26);
    long u = 0, v = 0;
    int n = 0;
    for (; n < most; ++n) {
        const long uu = u * u >> 26, vv = v * v >> 26;
        if (uu + vv > (long)4 << 26)
            break;
        v = (u * v >> 25) + b;
        u = uu - vv + a;
    }
    out[y * side + x] = n;
}
kernel void mandelbrot(global int *out, uint side, uint tile, int most) {
    const uint at = get_global_id(0);
    ACS_SPAWN(pixel, tile * tile, out, side, tile, at, most);
}

/* A grid that is refined round a circle, twice: cells of 64, these of 16. */
inline bool is_near(int x, int y, int width, int radius) {
    const int d = x * x + y * y - radius * radius;
    return (d < 0 ? -d : d) < 2 * width * radius;
}
void finest(uint item, global int *out, uint cell, int x, int y, int radius) {
    const int u = x + (int)(item % 4u), v = y + (int)(item / 4u);
    atomic_add(&out[cell], u * u + v * v < radius * radius ? 1 : 0);
}
void finer(uint item, global int *out, uint cell, int x, int y, int radius) {
    const int u = x + 4 * (int)(item % 8u), v = y + 4 * (int)(item / 8u);
    if (is_near(u, v, 8, radius))
        ACS_SPAWN(finest, 16u, out, cell, u, v, radius);
    else
        atomic_add(&out[cell], u * u + v * v < radius * radius ? 16 : 0);
}
kernel void refine(global int *out, uint side, int radius) {
    const uint cell = get_global_id(0);
    const int x = 32 * (int)(cell % side), y = 32 * (int)(cell / side);
    out[cell] = 0;
    if (is_near(x, y, 48, radius))
        ACS_SPAWN(finer, 64u, out, cell, x, y, radius);
    else
        out[cell] = x * x + y * y < radius * radius ? 1024 : 0;
}

/* ---- search and sorting ------------------------------------------------------------------------ */

/* Queens on a board: the queens of two rows are set, and the items set that of the third. */
void queen(uint item, global int *found, uint n, uint columns, uint falling, uint rising, uint slot) {
    const uint all = (1u << n) - 1u, bit = 1u << item;
    if ((columns | falling | rising) & bit)
        return;
    uint left[16], c[16], f[16], r[16];
    int depth = 0, count = 0;
    c[0] = columns | bit;
    f[0] = (falling | bit) << 1;
    r[0] = (rising | bit) >> 1;
    left[0] = all & ~(c[0] | f[0] | r[0]);
    while (depth >= 0) {
        if (c[depth] == all || left[depth] == 0u) {
            count += c[depth] == all;
            --depth;
            continue;
        }
        const uint one = left[depth] & (0u - left[depth]);
        left[depth] ^= one;
        c[depth + 1] = c[depth] | one;
        f[depth + 1] = (f[depth] | one) << 1;
        r[depth + 1] = (r[depth] | one) >> 1;
        left[depth + 1] = all & ~(c[depth + 1] | f[depth + 1] | r[depth + 1]);
        ++depth;
    }
    atomic_add(&found[slot], count);
}
kernel void queens(global int *found, uint n) {
    const uint at = get_global_id(0), a = 1u << at / n, b = 1u << at % n;
    found[at] = 0;
    if ((b & (a | a << 1 | a >> 1)) == 0u)
        ACS_SPAWN(queen, n, found, n, a | b, (a << 1 | b) << 1, (a >> 1 | b) >> 1, at);
}

/* Quicksort: a round parts each segment in two. */
void part(uint item, global const int *from, global int *to, global int *low, global int *high,
          int first, uint segment, int pivot) {
    const int key = from[first + (int)item];
    if (key < pivot)
        to[atomic_inc(&low[segment])] = key;
    else
        to[atomic_dec(&high[segment]) - 1] = key;
}
kernel void part_segments(global const int *begin, global const int *from, global int *to,
                          global int *low, global int *high) {
    const uint segment = get_global_id(0);
    const int first = begin[segment], end = begin[segment + 1];
    low[segment] = first;
    high[segment] = end;
    if (first < end) {
        const int a = from[first], b = from[(first + end) / 2], c = from[end - 1];
        const int pivot = max(min(a, b), min(max(a, b), c));
        ACS_SPAWN(part, (uint)(end - first), from, to, low, high, first, segment, pivot);
    }
}
kernel void cut_segments(global const int *begin, global const int *low, global int *next) {
    const uint segment = get_global_id(0);
    next[2 * segment] = begin[segment];
    next[2 * segment + 1] = low[segment];
    next[2 * segment + 2] = begin[segment + 1]; /* the next one writes the same there */
}
void place(uint item, global const int *from, global int *to, int first, int end) {
    const int at = first + (int)item, key = from[at];
    int less = 0;
    for (int i = first; i < end; ++i)
        less += from[i] < key || (from[i] == key && i < at);
    to[first + less] = key;
}
kernel void sort_segments(global const int *begin, global const int *from, global int *to) {
    const int first = begin[get_global_id(0)], end = begin[get_global_id(0) + 1];
    ACS_SPAWN(place, (uint)(end - first), from, to, first, end);
}

/* ---- tables, products, strings ----------------------------------------------------------------- */

/* Rows of two tables with the same key; both are kept by buckets of keys. */
void probe(uint item, global const int *left, global const int *right, global int *found, int first,
           int begin, int end) {
    const int at = first + (int)item, key = left[at];
    int matches = 0;
    for (int i = begin; i < end; ++i)
        matches += right[i] == key;
    found[at] = matches;
}
kernel void join(global const int *left_row, global const int *right_row, global const int *left,
                 global const int *right, global int *found) {
    const int bucket = get_global_id(0), first = left_row[bucket];
    const int begin = right_row[bucket], end = right_row[bucket + 1];
    ACS_SPAWN(probe, (uint)(left_row[bucket + 1] - first), left, right, found, first, begin, end);
}

/* Products of matrices of uneven height with one matrix of 16 columns. */
void multiply(uint item, global const int *a, global const int *b, global int *c, uint first, uint depth) {
    const uint row = first + item / 16u, column = item % 16u;
    int sum = 0;
    for (uint k = 0; k < depth; ++k)
        sum += a[row * depth + k] * b[k * 16u + column];
    c[row * 16u + column] = sum;
}
kernel void products(global const int *row, global const int *a, global const int *b, global int *c, uint depth) {
    const uint at = get_global_id(0), first = row[at];
    ACS_SPAWN(multiply, 16u * (row[at + 1] - first), a, b, c, first, depth);
}

/* The best place of each read among its candidates: letters that agree, of 64. */
void align(uint item, global const int *place_of, global const uchar *genome, global const uchar *reads,
           global int *best, int first, int read) {
    const int at = place_of[first + (int)item];
    int same = 0;
    for (int i = 0; i < 64; ++i)
        same += genome[at + i] == reads[64 * read + i];
    atomic_max(&best[read], same);
}
kernel void align_reads(global const int *row, global const int *place_of, global const uchar *genome,
                        global const uchar *reads, global int *best) {
    const int read = get_global_id(0), first = row[read];
    best[read] = 0;
    ACS_SPAWN(align, (uint)(row[read + 1] - first), place_of, genome, reads, best, first, read);
}
