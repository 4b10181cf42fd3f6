/* Kernels of the pipelines: images, finance, graphs, learning. Sizes of groups are 64. */

#define GROUP 64

/* The work of a work-item: one element or pixel, or, with STRIDED, every n-th of them, for launches of
   fewer work-items than there are elements. */
#ifdef STRIDED
#define ACROSS(i, dimension, length)                                                              \
    for (int i = get_global_id(dimension); i < (length); i += get_global_size(dimension))
#define EACH(i, length) ACROSS(i, 0, length)
#define EACH_PIXEL(x, y, side) ACROSS(y, 1, side) ACROSS(x, 0, side)
#else
#define EACH(i, length)                                                                           \
    int i = get_global_id(0);                                                                     \
    if (i < (length))
#define EACH_PIXEL(x, y, side)                                                                    \
    int x = get_global_id(0), y = get_global_id(1);                                               \
    if (x < (side))
#endif

kernel void square(global const float *x, global float *y, int length)
{
    EACH(i, length) y[i] = x[i] * x[i];
}

/* The sum of `value` over a group; every item of the group takes part. */
float sum_of_group(float value, local float *scratch)
{
    int me = get_local_id(0);
    scratch[me] = value;
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < reach) scratch[me] += scratch[me + reach];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    return scratch[0];
}

/* Each group adds up every n-th of the differences. */
kernel void partial_sums(global const float *x, global const float *y, global float *partial,
                         int length)
{
    local float scratch[GROUP];
    float mine = 0;
    for (int i = get_global_id(0); i < length; i += get_global_size(0)) mine += x[i] - y[i];
    float all = sum_of_group(mine, scratch);
    if (get_local_id(0) == 0) partial[get_group_id(0)] = all;
}

kernel void sum_of(global const float *x, global float *total, int length)
{
    local float scratch[GROUP];
    float mine = 0;
    for (int i = get_local_id(0); i < length; i += GROUP) mine += x[i];
    float all = sum_of_group(mine, scratch);
    if (get_local_id(0) == 0) total[0] = all;
}

/* The same for products. */
kernel void partial_dots(global const float *x, global const float *y, global float *partial,
                         int length)
{
    local float scratch[GROUP];
    float mine = 0;
    for (int i = get_global_id(0); i < length; i += get_global_size(0)) mine += x[i] * y[i];
    float all = sum_of_group(mine, scratch);
    if (get_local_id(0) == 0) partial[get_group_id(0)] = all;
}

/* ---- B&S: options, in double precision -------------------------------------------------------- */

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable

/* The normal distribution: Abramowitz and Stegun 26.2.17, five terms. */
double normal(double d)
{
    double k = 1.0 / (1.0 + 0.2316419 * fabs(d));
    double terms = 1.330274429;
    terms = terms * k - 1.821255978;
    terms = terms * k + 1.781477937;
    terms = terms * k - 0.356563782;
    terms = terms * k + 0.319381530;
    double tail = 0.3989422804014327 * exp(-0.5 * d * d) * k * terms;
    return d > 0 ? 1.0 - tail : tail;
}

/* Black and Scholes: a European call for each price of the share. */
kernel void price(global const double *share, global double *call, int length, double strike,
                  double rate, double volatility, double years)
{
    double spread = volatility * sqrt(years);
    double drift = (rate + 0.5 * volatility * volatility) * years;
    EACH(i, length) {
        double d = (log(share[i] / strike) + drift) / spread;
        call[i] = share[i] * normal(d) - strike * exp(-rate * years) * normal(d - spread);
    }
}
#endif

/* ---- IMG: a square image, whose border is continued beyond it --------------------------------- */

float pixel(global const float *image, int x, int y, int side)
{
    return image[clamp(y, 0, side - 1) * side + clamp(x, 0, side - 1)];
}

kernel void blur(global const float *image, global float *blurred, global const float *weights,
                 int side, int diameter)
{
    EACH_PIXEL(x, y, side) {
        float sum = 0;
        for (int v = 0; v < diameter; v++)
            for (int u = 0; u < diameter; u++)
                sum += weights[v * diameter + u]
                       * pixel(image, x + u - diameter / 2, y + v - diameter / 2, side);
        blurred[y * side + x] = sum;
    }
}

/* How steep the image is. */
kernel void sobel(global const float *image, global float *mask, int side)
{
    EACH_PIXEL(x, y, side) {
        float across = 0, down = 0;
        for (int n = -1; n <= 1; n++) {
            float weight = n == 0 ? 2 : 1;
            float right = pixel(image, x + 1, y + n, side), left = pixel(image, x - 1, y + n, side);
            across += weight * (right - left);
            down += weight * (pixel(image, x + n, y + 1, side) - pixel(image, x + n, y - 1, side));
        }
        mask[y * side + x] = sqrt(across * across + down * down);
    }
}

/* The largest of the values that each group reads; with `sign` -1 the smallest. */
kernel void extreme(global const float *x, global float *found, int length, float sign)
{
    local float scratch[GROUP];
    int me = get_local_id(0);
    float mine = -INFINITY;
    for (int i = get_global_id(0); i < length; i += get_global_size(0))
        mine = fmax(mine, sign * x[i]);
    scratch[me] = mine;
    for (int reach = GROUP / 2; reach > 0; reach /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < reach) scratch[me] = fmax(scratch[me], scratch[me + reach]);
    }
    if (me == 0) found[get_group_id(0)] = sign * scratch[0];
}

kernel void stretch(global float *mask, global const float *smallest, global const float *largest,
                    int length)
{
    EACH(i, length)
        mask[i] = fmin(1.0f, 5 * (mask[i] - smallest[0]) / (largest[0] - smallest[0]));
}

kernel void unsharpen(global const float *image, global const float *blurred, global float *sharp,
                      int length)
{
    EACH(i, length) sharp[i] = clamp(1.5f * image[i] - 0.5f * blurred[i], 0.0f, 1.0f);
}

kernel void combine(global const float *x, global const float *y, global const float *mask,
                    global float *result, int length)
{
    EACH(i, length) result[i] = x[i] * mask[i] + y[i] * (1 - mask[i]);
}

/* ---- ML: a row for each work-item; what belongs to a feature or a class is side by side ------- */

#define CLASSES 10

/* Each row gets mean 0 and deviation 1. */
kernel void normalise(global const int *x, global float *even, int rows, int features)
{
    EACH(row, rows) {
        float sum = 0, squares = 0;
        for (int f = 0; f < features; f++) {
            float value = x[f * rows + row];
            sum += value;
            squares += value * value;
        }
        float mean = sum / features;
        float by = rsqrt(squares / features - mean * mean);
        for (int f = 0; f < features; f++) even[f * rows + row] = (x[f * rows + row] - mean) * by;
    }
}

#define PRODUCT(NAME, TYPE)                                                                       \
    kernel void NAME(global const TYPE *x, global const float *weights, global float *product,    \
                     int rows, int features)                                                      \
    {                                                                                             \
        EACH(row, rows) {                                                                         \
            float sums[CLASSES] = {0};                                                            \
            for (int f = 0; f < features; f++) {                                                  \
                float value = x[f * rows + row];                                                  \
                for (int c = 0; c < CLASSES; c++) sums[c] += value * weights[f * CLASSES + c];    \
            }                                                                                     \
            for (int c = 0; c < CLASSES; c++) product[c * rows + row] = sums[c];                  \
        }                                                                                         \
    }

PRODUCT(product_of_counts, int)
PRODUCT(product_of_numbers, float)

kernel void add_intercept(global float *product, global const float *intercept, int rows)
{
    EACH(row, rows) {
        for (int c = 0; c < CLASSES; c++) product[c * rows + row] += intercept[c];
    }
}

kernel void largest_of_row(global const float *product, global float *largest, int rows)
{
    EACH(row, rows) {
        float most = product[row];
        for (int c = 1; c < CLASSES; c++) most = fmax(most, product[c * rows + row]);
        largest[row] = most;
    }
}

kernel void log_sum_exp(global const float *product, global const float *largest,
                        global float *total, int rows)
{
    EACH(row, rows) {
        float sum = 0;
        for (int c = 0; c < CLASSES; c++) sum += exp(product[c * rows + row] - largest[row]);
        total[row] = log(sum) + largest[row];
    }
}

kernel void exponentiate(global float *product, global const float *total, int rows)
{
    EACH(row, rows) {
        for (int c = 0; c < CLASSES; c++)
            product[c * rows + row] = exp(product[c * rows + row] - total[row]);
    }
}

kernel void softmax(global float *score, int rows)
{
    EACH(row, rows) {
        float sum = 0;
        for (int c = 0; c < CLASSES; c++) sum += exp(score[c * rows + row]);
        for (int c = 0; c < CLASSES; c++) score[c * rows + row] = exp(score[c * rows + row]) / sum;
    }
}

/* The class with the largest sum of both scores. */
kernel void choose_class(global const float *a, global const float *b, global int *chosen,
                         int rows)
{
    EACH(row, rows) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (a[c * rows + row] + b[c * rows + row] > a[best * rows + row] + b[best * rows + row])
                best = c;
        chosen[row] = best;
    }
}

/* ---- HITS: a graph as rows of column numbers -------------------------------------------------- */

/* For each node the sum over those that it is linked with. */
kernel void gather(global const int *start, global const int *column, global const float *from,
                   global float *to, int nodes)
{
    EACH(node, nodes) {
        float sum = 0;
        for (int k = start[node]; k < start[node + 1]; k++) sum += from[column[k]];
        to[node] = sum;
    }
}

kernel void divide_by_root(global const float *x, global const float *squares, global float *y,
                           int length)
{
    EACH(i, length) y[i] = x[i] / sqrt(squares[0]);
}

/* ---- DL: planes of square images -------------------------------------------------------------- */

/* 3x3, every second pixel, no border, then ReLU. `weights`: for each output, for each input. */
kernel void convolve(global const float *image, global const float *weights, global float *result,
                     int inputs, int side, int out)
{
    int k = get_global_id(2);
    EACH_PIXEL(x, y, out) {
        float sum = 0;
        for (int c = 0; c < inputs; c++)
            for (int v = 0; v < 3; v++)
                for (int u = 0; u < 3; u++)
                    sum += weights[((k * inputs + c) * 3 + v) * 3 + u]
                           * image[(c * side + 2 * y + v) * side + 2 * x + u];
        result[(k * out + y) * out + x] = fmax(sum, 0.0f);
    }
}

/* The mean of each `size` x `size` pixels. */
kernel void mean_pool(global const float *image, global float *result, int side, int out, int size)
{
    int k = get_global_id(2);
    EACH_PIXEL(x, y, out) {
        float sum = 0;
        for (int v = 0; v < size; v++)
            for (int u = 0; u < size; u++)
                sum += image[(k * side + y * size + v) * side + x * size + u];
        result[(k * out + y) * out + x] = sum / (size * size);
    }
}

kernel void concatenate(global const float *x, global const float *y, global float *both,
                        int length)
{
    EACH(i, length) {
        both[i] = x[i];
        both[length + i] = y[i];
    }
}
