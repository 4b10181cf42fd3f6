/* Kernels of the demo: an adaptive filter, tile by tile.
 *
 * A launch is one work-group of GROUP work-items, for one tile. A tile comes as a view of a larger
 * array: a pointer to its first pixel, and a pitch, in pixels from one row to the next. Where a
 * kernel reads a margin around its tile, the pointer is to the first pixel of the margin. No kernel
 * reads what another work-item of the same launch writes.
 */

constant float BINOMIAL_5[5] = {1, 4, 6, 4, 1};
constant float BINOMIAL_9[9] = {1, 8, 28, 56, 70, 56, 28, 8, 1};

/* Features of the tiles of one row. For each column of pixels: the sum of Immerkaer's noise mask ("Fast
 * noise variance estimation", 1996) and, after all of these, of the gradient. The pixels are whole
 * numbers, so sums are exact and every device decides alike. The margin is 1. */
kernel void measure(global const float *in, int pitch, global int *sums, int width, int height)
{
    for (int x = get_local_id(0); x < width; x += GROUP) {
        int rough = 0, steep = 0;
        for (int y = 0; y < height; ++y) {
            global const float *a = in + y * pitch + x, *b = a + pitch, *c = b + pitch;
            float above = a[0] - 2 * a[1] + a[2], below = c[0] - 2 * c[1] + c[2];
            rough += (int)fabs(above - 2 * (b[0] - 2 * b[1] + b[2]) + below);
            steep += (int)(fabs(b[2] - b[0]) + fabs(c[1] - a[1]));
        }
        sums[x] = rough;
        sums[width + x] = steep;
    }
}

/* A wide blur, for tiles with nothing to lose. The margin is 4. */
kernel void smooth(global const float *in, int in_pitch, global float *out, int out_pitch, int size)
{
    for (int i = get_local_id(0); i < size * size; i += GROUP) {
        int x = i % size, y = i / size;
        float sum = 0;
        for (int dy = 0; dy < 9; ++dy)
            for (int dx = 0; dx < 9; ++dx)
                sum += BINOMIAL_9[dy] * BINOMIAL_9[dx] * in[(y + dy) * in_pitch + x + dx];
        out[y * out_pitch + x] = sum / 65536;
    }
}

/* One pass of an average that keeps edges: neighbours of another brightness count less. The margin is
 * 3. */
kernel void denoise(global const float *in, int in_pitch, global float *out, int out_pitch,
                    int size, float tolerance)
{
    float scale = 1 / (tolerance * tolerance);
    for (int i = get_local_id(0); i < size * size; i += GROUP) {
        int x = i % size, y = i / size;
        float centre = in[(y + 3) * in_pitch + x + 3];
        float sum = 0, weights = 0;
        for (int dy = 0; dy < 7; ++dy)
            for (int dx = 0; dx < 7; ++dx) {
                float value = in[(y + dy) * in_pitch + x + dx];
                float weight = 1 / (1 + (value - centre) * (value - centre) * scale);
                sum += weight * value;
                weights += weight;
            }
        out[y * out_pitch + x] = sum / weights;
    }
}

/* Away from the local average, within the range of the image. The margin is 2. */
kernel void sharpen(global const float *in, int in_pitch, global float *out, int out_pitch,
                    int size, float amount)
{
    for (int i = get_local_id(0); i < size * size; i += GROUP) {
        int x = i % size, y = i / size;
        float centre = in[(y + 2) * in_pitch + x + 2];
        float sum = 0;
        for (int dy = 0; dy < 5; ++dy)
            for (int dx = 0; dx < 5; ++dx)
                sum += BINOMIAL_5[dy] * BINOMIAL_5[dx] * in[(y + dy) * in_pitch + x + dx];
        out[y * out_pitch + x] = clamp(centre + amount * (centre - sum / 256), 0.0f, 255.0f);
    }
}

/* Blend two neighbouring tiles that were treated differently: diffuse across their seam, most at the
 * seam itself. In place, line by line. A line has 2 * REACH pixels, `across` apart; lines are `along`
 * apart. */
kernel void blend(global float *pixels, int across, int along, int lines, int rounds)
{
    for (int line = get_local_id(0); line < lines; line += GROUP) {
        float value[2 * REACH];
        for (int i = 0; i < 2 * REACH; ++i)
            value[i] = pixels[line * along + i * across];
        for (int round = 0; round < rounds; ++round) {
            float before = value[0];
            for (int i = 1; i < 2 * REACH - 1; ++i) {
                float here = value[i];
                float rate = (0.5f / REACH) * (i < REACH ? i + 1 : 2 * REACH - i);
                value[i] = here + rate * (0.5f * (before + value[i + 1]) - here);
                before = here;
            }
        }
        for (int i = 1; i < 2 * REACH - 1; ++i)
            pixels[line * along + i * across] = value[i];
    }
}
