/* Kernels that compute beside kernels that wait for memory. Groups have 256 work-items. */

#define TILE 64
#define DEPTH 16

/* c = a * b, square matrices; a group makes a tile of 64 x 64, a work-item 4 x 4 of it. */
kernel void multiply(global const float *a, global const float *b, global float *c, int n)
{
    local float as[TILE * DEPTH], bs[TILE * DEPTH];
    int x = get_local_id(0), y = get_local_id(1), me = y * 16 + x;
    int left = get_group_id(0) * TILE, top = get_group_id(1) * TILE;
    float sum[4][4];
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) sum[i][j] = 0;
    for (int k = 0; k < n; k += DEPTH) {
        for (int t = me; t < TILE * DEPTH; t += 256) {
            as[t] = a[(top + t / DEPTH) * n + k + t % DEPTH];
            bs[t] = b[(k + t / TILE) * n + left + t % TILE];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int d = 0; d < DEPTH; ++d)
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j)
                    sum[i][j] += as[(y * 4 + i) * DEPTH + d] * bs[d * TILE + x + 16 * j];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) c[(top + y * 4 + i) * n + left + x + 16 * j] = sum[i][j];
}

/* y = max(x * scale + shift, 0) of `quads` vectors, four of them at a time. */
kernel void activate(global const float4 *x, global float4 *y, int quads, float scale, float shift)
{
    int step = get_global_size(0);
    for (int i = get_global_id(0); i < quads; i += 4 * step) {
        int b = i + step, c = b + step, d = c + step;
        float4 one = x[i], two = 0, three = 0, four = 0;
        if (b < quads) two = x[b];
        if (c < quads) three = x[c];
        if (d < quads) four = x[d];
        y[i] = fmax(one * scale + shift, 0.0f);
        if (b < quads) y[b] = fmax(two * scale + shift, 0.0f);
        if (c < quads) y[c] = fmax(three * scale + shift, 0.0f);
        if (d < quads) y[d] = fmax(four * scale + shift, 0.0f);
    }
}

/* A convolution 3 x 3 without border; a work-item makes a pixel of four channels. Weights are
   inputs x 9 x outputs. */
kernel void convolve_3(global const float *image, global const float *weights, global float *out,
                       int inputs, int side, int outputs)
{
    int wide = side - 2, pixels = wide * wide;
    int pixel = get_global_id(0), first = get_global_id(1) * 4;
    if (pixel >= pixels) return;
    int row = pixel / wide, column = pixel % wide;
    float sum[4] = {0, 0, 0, 0};
    for (int input = 0; input < inputs; ++input) {
        global const float *from = image + (input * side + row) * side + column;
        global const float *by = weights + input * 9 * outputs + first;
        for (int place = 0; place < 9; ++place) {
            float value = from[place / 3 * side + place % 3];
            for (int j = 0; j < 4; ++j) sum[j] += value * by[place * outputs + j];
        }
    }
    for (int j = 0; j < 4; ++j) out[(first + j) * pixels + pixel] = fmax(sum[j], 0.0f);
}

/* The largest of each two neighbours of `quads` vectors, element by element: half as many. */
kernel void pool_pairs(global const float4 *x, global float4 *y, int quads)
{
    int step = get_global_size(0);
    for (int i = get_global_id(0); i < quads; i += 2 * step) {
        int b = i + step;
        float4 one = x[2 * i], two = x[2 * i + 1], three = 0, four = 0;
        if (b < quads) { three = x[2 * b]; four = x[2 * b + 1]; }
        y[i] = fmax(one, two);
        if (b < quads) y[b] = fmax(three, four);
    }
}
