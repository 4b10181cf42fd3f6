/* Products of matrices and convolutions of networks, and sweeps over a grid.

   A product is c = act(a * b) of matrices by rows, of which a group makes 128 x 128 elements. Sizes are
   multiples of 128, depths of 8. With TAPS 9 it is a convolution of 3 x 3: rows are the pixels of images
   with a border of zeros, `pitch` pixels in a row and `high` rows in an image; b has a matrix for each
   tap. A pixel's taps are then rows at a distance, so that no index is divided. Writes to a border are
   zero. */

#ifndef TAPS
#define TAPS 1
#endif
#define EDGE 128
#define PLAIN 0
#define GELU 1
#define RELU 2

inline float acted(float x, int act)
{
    if (act == GELU) return x / (1.0f + exp(-1.702f * x));
    return act == RELU ? fmax(x, 0.0f) : x;
}

#if TAPS == 9
#define FAR(tap) (((tap) / 3) * pitch + (tap) % 3)
#define INSIDE(row) ((row) % pitch < pitch - 2 && (row) / pitch % high < high - 2)
#define SHIFT (pitch + 1)
#else
#define FAR(tap) 0
#define INSIDE(row) true
#define SHIFT 0
#endif

#ifdef ON_CPU
/* A group is one work-item, which makes 8 x 32 elements at a time of a part of b that it has copied. */
#define DEPTH 256
#define EIGHT(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)
#define ZERO(i) float16 s##i = 0, t##i = 0;
#define ADD(i) { const float16 v = from[i * wide + k]; s##i += v * one; t##i += v * two; }
#define MORE(i) s##i += to[i * pitch_c]; t##i += to[i * pitch_c + 1];
#define KEEP(i) to[i * pitch_c] = s##i; to[i * pitch_c + 1] = t##i;
kernel void product(global const float *a, global const float16 *b, global float16 *c, int depth, int wide,
                    int wide_b, int wide_c, int act, int pitch, int high)
{
    const int top = get_group_id(1) * EDGE, left = get_group_id(0) * 8, pitch_b = wide_b / 16, pitch_c = wide_c / 16;
    float16 part[4][2 * DEPTH];
    for (int tap = 0; tap < TAPS; ++tap)
        for (int begin = 0; begin < depth; begin += DEPTH) {
            const int deep = min(depth - begin, DEPTH);
            for (int k = 0; k < deep; ++k)
                for (int x = 0; x < 8; ++x)
                    part[x / 2][2 * k + x % 2] = b[(tap * depth + begin + k) * pitch_b + left + x];
            for (int x = 0; x < 4; ++x)
                for (int y = 0; y < EDGE; y += 8) {
                    global const float *from = a + (top + y + FAR(tap)) * wide + begin;
                    global float16 *to = c + (top + y + SHIFT) * pitch_c + left + 2 * x;
                    EIGHT(ZERO)
                    for (int k = 0; k < deep; ++k) {
                        const float16 one = part[x][2 * k], two = part[x][2 * k + 1];
                        EIGHT(ADD)
                    }
                    if (begin + tap) { EIGHT(MORE) }
                    EIGHT(KEEP)
                }
        }
    if (act != PLAIN || TAPS > 1)
        for (int y = 0; y < EDGE; ++y) {
            global float *row = (global float *)(c + (top + y + SHIFT) * pitch_c + left);
            for (int x = 0; x < EDGE; ++x) row[x] = INSIDE(top + y) ? acted(row[x], act) : 0.0f;
        }
}
#else
/* A group has 256 work-items, each of which makes 8 x 8 elements. Local memory holds two halves: one is
   read while the other is filled. */
#define DEPTH 8
#define ADD(i, v) sum[i][0] += v * one; sum[i][1] += v * two;
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void product(global const float *a, global const float *b, global float *c, int depth, int wide, int wide_b,
             int wide_c, int act, int pitch, int high)
{
    local float4 as[2][DEPTH * EDGE / 4], bs[2][DEPTH * EDGE / 4];
    const int me = get_local_id(0), x = me % 16, y = me / 16;
    const int top = get_group_id(1) * EDGE, left = get_group_id(0) * EDGE;
    const int a_row = me / 2, a_at = me % 2 * 4, b_row = me / 32, b_at = me % 32;
    float4 sum[8][2];
    for (int i = 0; i < 8; ++i) sum[i][0] = sum[i][1] = 0;
    int side = 0;
    for (int tap = 0; tap < TAPS; ++tap) {
        global const float *from_a = a + (top + a_row + FAR(tap)) * wide + a_at;
        global const float *from_b = b + (tap * depth + b_row) * wide_b + left + 4 * b_at;
        float4 next_a = vload4(0, from_a), next_b = vload4(0, from_b);
        for (int k = 0; k < depth; k += DEPTH, side ^= 1) {
            local float *to = (local float *)as[side] + a_at * EDGE + a_row;
            to[0] = next_a.x; to[EDGE] = next_a.y; to[2 * EDGE] = next_a.z; to[3 * EDGE] = next_a.w;
            bs[side][me] = next_b;
            barrier(CLK_LOCAL_MEM_FENCE);
            const int next = min(k + DEPTH, depth - DEPTH);
            next_a = vload4(0, from_a + next);
            next_b = vload4(0, from_b + next * wide_b);
            for (int d = 0; d < DEPTH; ++d) {
                const float4 up = as[side][d * 32 + y], down = as[side][d * 32 + 16 + y];
                const float4 one = bs[side][d * 32 + x], two = bs[side][d * 32 + 16 + x];
                ADD(0, up.x) ADD(1, up.y) ADD(2, up.z) ADD(3, up.w)
                ADD(4, down.x) ADD(5, down.y) ADD(6, down.z) ADD(7, down.w)
            }
        }
    }
    for (int i = 0; i < 8; ++i) {
        const int row = top + y * 4 + i % 4 + i / 4 * (EDGE / 2);
        global float *to = c + (row + SHIFT) * wide_c + left;
        for (int j = 0; j < 2; ++j) {
            const float4 v = INSIDE(row) ? sum[i][j] : 0;
            vstore4((float4)(acted(v.x, act), acted(v.y, act), acted(v.z, act), acted(v.w, act)), 16 * j + x, to);
        }
    }
}
#endif

/* x = silu(x) * y */
kernel void gate(global float *x, global const float *y)
{
    const int i = get_global_id(0);
    x[i] = x[i] / (1.0f + exp(-x[i])) * y[i];
}

/* Make rows of `wide` elements that sum to one. A work-item makes one. */
kernel void softmax(global float *x, int wide, float scale)
{
    global float *row = x + get_global_id(0) * wide;
    float most = row[0], sum = 0;
    for (int i = 1; i < wide; ++i) most = fmax(most, row[i]);
    for (int i = 0; i < wide; ++i) sum += row[i] = exp((row[i] - most) * scale);
    for (int i = 0; i < wide; ++i) row[i] /= sum;
}

/* A point becomes `own` of itself and `other` of its four neighbours. The rim of the grid stays. */
kernel void sweep(global const float *x, global float *y, int wide, int high, float own, float other)
{
    const int i = get_global_id(0), column = i % wide, row = i / wide;
    if (column == 0 || column == wide - 1 || row == 0 || row == high - 1) y[i] = x[i];
    else y[i] = own * x[i] + other * (x[i - 1] + x[i + 1] + x[i - wide] + x[i + wide]);
}

/* The mean of three in a row, or, with `step` a row, in a column. Elements without a neighbour stay. */
kernel void blur(global const float *x, global float *y, int items, int step)
{
    const int i = get_global_id(0);
    if (i < step || i >= items - step) y[i] = x[i];
    else y[i] = (x[i - step] + x[i] + x[i + step]) / 3;
}

/* A chain of dependent arithmetic that no compiler folds. */
kernel void busy(global const float *x, global float *y, int turns)
{
    const int i = get_global_id(0);
    float v = x[i];
    for (int turn = 0; turn < turns; ++turn) v = fma(v, v, -0.7f);
    y[i] = v;
}
