/* Kernels on square tiles of a matrix: a wavefront, and a Cholesky factorisation. Each launch is one
   group. benchmarks/peers/tiles.cu has the same in CUDA. */

/* WAVE x WAVE cells of a matrix of `pitch` columns, by anti-diagonals: a cell is the largest of its
   upper, left and upper left neighbours, and a score. The tile is filled `passes` times. */
#define WAVE 64

kernel void wave(global int *tile, global const int *above, global const int *left,
                 global const int *corner, uint pitch, uint passes, uint seed)
{
    const int row = get_local_id(0);
    for (uint pass = 0; pass < passes; ++pass)
        for (int diagonal = 0; diagonal < 2 * WAVE - 1; ++diagonal) {
            const int column = diagonal - row;
            if (column >= 0 && column < WAVE) {
                global int *cell = tile + row * pitch + column;
                const int up = row ? cell[-(int)pitch] : above[column];
                const int before = column ? cell[-1] : left[row * pitch];
                const int across = row && column ? cell[-(int)pitch - 1]
                                   : row ? left[(row - 1) * pitch] : column ? above[column - 1] : *corner;
                const uint mixed = (seed + row * 31u + column) * 2654435761u;
                *cell = max(max(up, before) - 1, across + (int)(mixed >> 29));
            }
            barrier(CLK_GLOBAL_MEM_FENCE);
        }
}

/* Tiles of EDGE x EDGE, each of them on its own; GROUP work-items. */
#define EDGE 32
#define GROUP 256
#define EACH(n) for (int n = get_local_id(0); n < EDGE * EDGE; n += GROUP)

/* The lower triangle of a tile becomes its factor. */
kernel void factor(global float *a)
{
    local float t[EDGE][EDGE + 1];
    EACH(n) t[n / EDGE][n % EDGE] = a[n];
    for (int k = 0; k < EDGE; ++k) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const float root = sqrt(t[k][k]);
        barrier(CLK_LOCAL_MEM_FENCE);
        const int i = get_local_id(0);
        if (i >= k && i < EDGE) t[i][k] = i == k ? root : t[i][k] / root;
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH(n) {
            const int r = n / EDGE, c = n % EDGE;
            if (c > k && r >= c) t[r][c] -= t[r][k] * t[c][k];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH(n) a[n] = n % EDGE <= n / EDGE ? t[n / EDGE][n % EDGE] : 0.0f;
}

/* A tile below a factor: what times the factor's transpose is the tile. */
kernel void solve(global const float *l, global float *a)
{
    local float f[EDGE][EDGE + 1], t[EDGE][EDGE + 1];
    EACH(n) { f[n / EDGE][n % EDGE] = l[n]; t[n / EDGE][n % EDGE] = a[n]; }
    for (int k = 0; k < EDGE; ++k) {
        barrier(CLK_LOCAL_MEM_FENCE);
        const int r = get_local_id(0);
        if (r < EDGE) t[r][k] /= f[k][k];
        barrier(CLK_LOCAL_MEM_FENCE);
        EACH(n) {
            const int i = n / EDGE, c = n % EDGE;
            if (c > k) t[i][c] -= t[i][k] * f[c][k];
        }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH(n) a[n] = t[n / EDGE][n % EDGE];
}

/* A tile less the product of two others, the second transposed. */
kernel void update(global const float *x, global const float *y, global float *a)
{
    local float f[EDGE][EDGE + 1], t[EDGE][EDGE + 1];
    EACH(n) { f[n / EDGE][n % EDGE] = x[n]; t[n / EDGE][n % EDGE] = y[n]; }
    barrier(CLK_LOCAL_MEM_FENCE);
    EACH(n) {
        const int r = n / EDGE, c = n % EDGE;
        float sum = a[n];
        for (int k = 0; k < EDGE; ++k) sum -= f[r][k] * t[c][k];
        a[n] = sum;
    }
}
