/* Kernels of neural networks, for one image at a time.
 *
 * An image is channels x rows x columns of float. Weights of a convolution lie in blocks of four
 * output channels: [outputs / 4][inputs][size][size][4], so that one load serves four sums; those
 * of a depthwise one are [channels][size][size]. Every kernel loops over its outputs in steps of
 * the global size, so that any number of work-items will do, and none has a barrier: they all fit
 * into one scheduler. What normalisation does is folded into weights and biases. */

/* What follows a layer: nothing (0), or one of these. */
#define RELU 1
#define RELU6 2
#define SIGMOID 3
#define SWISH 4

#define MAXIMUM 0 /* of pooling; else the mean */

float activated(float value, int how)
{
    if (how == RELU) return fmax(value, 0.0f);
    if (how == RELU6) return fmin(fmax(value, 0.0f), 6.0f);
    if (how == SIGMOID) return 1.0f / (1.0f + exp(-value));
    if (how == SWISH) return value / (1.0f + exp(-value));
    return value;
}

float before_it(float value, int relu)
{
    return relu ? fmax(value, 0.0f) : value;
}

/* Four channels of one pixel. */
void store_four(global float *out, int block, int at, int area, float4 sum, int after)
{
    global float *to = out + 4 * block * area + at;
    to[0] = activated(sum.x, after);
    to[area] = activated(sum.y, after);
    to[2 * area] = activated(sum.z, after);
    to[3 * area] = activated(sum.w, after);
}

/* Any convolution; `pad` may be negative, which begins that many pixels further in. */
kernel void convolve(global const float *x, global const float *weights, global const float *bias,
                     global float *out, int inputs, int height, int width, int outputs, int rows,
                     int columns, int size, int stride, int pad, int before, int after)
{
    int area = rows * columns;
    for (int i = get_global_id(0); i < outputs / 4 * area; i += get_global_size(0)) {
        int block = i / area, at = i % area;
        int top = at / columns * stride - pad, left = at % columns * stride - pad;
        int first_y = max(0, -top), last_y = min(size, height - top);
        int first_x = max(0, -left), last_x = min(size, width - left);
        float4 sum = vload4(block, bias);
        global const float *w = weights + 4 * block * inputs * size * size;
        for (int c = 0; c < inputs; ++c)
            for (int y = first_y; y < last_y; ++y) {
                global const float *from = x + (c * height + top + y) * width + left;
                for (int k = first_x; k < last_x; ++k)
                    sum += before_it(from[k], before) * vload4((c * size + y) * size + k, w);
            }
        store_four(out, block, at, area, sum, after);
    }
}

/* A convolution of size 1 and stride 1: a product of matrices. */
kernel void pointwise(global const float *x, global const float *weights, global const float *bias,
                      global float *out, int inputs, int area, int outputs, int before, int after)
{
    for (int i = get_global_id(0); i < outputs / 4 * area; i += get_global_size(0)) {
        int block = i / area, at = i % area;
        float4 sum = vload4(block, bias);
        global const float *w = weights + 4 * block * inputs;
        for (int c = 0; c < inputs; ++c)
            sum += before_it(x[c * area + at], before) * vload4(c, w);
        store_four(out, block, at, area, sum, after);
    }
}

/* The same for large images: a work-item has four channels of four pixels. */
kernel void pointwise_four(global const float *x, global const float *weights,
                           global const float *bias, global float *out, int inputs, int area,
                           int outputs, int before, int after)
{
    int quarter = area / 4;
    for (int i = get_global_id(0); i < outputs / 4 * quarter; i += get_global_size(0)) {
        int block = i / quarter, at = i % quarter;
        float4 a = vload4(block, bias), b = a, c = a, d = a;
        global const float *w = weights + 4 * block * inputs;
        for (int k = 0; k < inputs; ++k) {
            float4 value = vload4(at, x + k * area), weight = vload4(k, w);
            if (before) value = fmax(value, (float4)(0.0f));
            a += value.x * weight;
            b += value.y * weight;
            c += value.z * weight;
            d += value.w * weight;
        }
        store_four(out, block, 4 * at, area, a, after);
        store_four(out, block, 4 * at + 1, area, b, after);
        store_four(out, block, 4 * at + 2, area, c, after);
        store_four(out, block, 4 * at + 3, area, d, after);
    }
}

kernel void depthwise(global const float *x, global const float *weights, global const float *bias,
                      global float *out, int channels, int height, int width, int rows, int columns,
                      int size, int stride, int pad, int before, int after)
{
    int area = rows * columns;
    for (int i = get_global_id(0); i < channels * area; i += get_global_size(0)) {
        int c = i / area, at = i % area;
        int top = at / columns * stride - pad, left = at % columns * stride - pad;
        int first_y = max(0, -top), last_y = min(size, height - top);
        int first_x = max(0, -left), last_x = min(size, width - left);
        float sum = bias[c];
        for (int y = first_y; y < last_y; ++y) {
            global const float *from = x + (c * height + top + y) * width + left;
            global const float *w = weights + (c * size + y) * size;
            for (int k = first_x; k < last_x; ++k) sum += before_it(from[k], before) * w[k];
        }
        out[i] = activated(sum, after);
    }
}

/* The largest or the mean of the pixels of a window that are inside of the image. */
kernel void pool(global const float *x, global float *out, int channels, int height, int width,
                 int rows, int columns, int size, int stride, int pad, int how)
{
    int area = rows * columns;
    for (int i = get_global_id(0); i < channels * area; i += get_global_size(0)) {
        int c = i / area, at = i % area;
        int top = at / columns * stride - pad, left = at % columns * stride - pad;
        int first_y = max(0, -top), last_y = min(size, height - top);
        int first_x = max(0, -left), last_x = min(size, width - left);
        float sum = 0, most = -INFINITY;
        for (int y = first_y; y < last_y; ++y)
            for (int k = first_x; k < last_x; ++k) {
                float value = x[(c * height + top + y) * width + left + k];
                sum += value;
                most = fmax(most, value);
            }
        out[i] = how == MAXIMUM ? most : sum / ((last_y - first_y) * (last_x - first_x));
    }
}

/* A weighted sum of one to four arrays; `count` says how many there are. */
kernel void combine(global const float *a, global const float *b, global const float *c,
                    global const float *d, global float *out, float weight_a, float weight_b,
                    float weight_c, float weight_d, int count, int length, int after)
{
    for (int i = get_global_id(0); i < length; i += get_global_size(0)) {
        float sum = weight_a * a[i];
        if (count > 1) sum += weight_b * b[i];
        if (count > 2) sum += weight_c * c[i];
        if (count > 3) sum += weight_d * d[i];
        out[i] = activated(sum, after);
    }
}

/* Means of `runs` stretches of `length`: pooling over all pixels, in one launch or two. */
kernel void means(global const float *x, global float *out, int runs, int length)
{
    for (int i = get_global_id(0); i < runs; i += get_global_size(0)) {
        float sum = 0;
        for (int k = 0; k < length; ++k) sum += x[i * length + k];
        out[i] = sum / length;
    }
}

/* Every output from every input; weights are [inputs][outputs]. */
kernel void dense(global const float *x, global const float *weights, global const float *bias,
                  global float *out, int inputs, int outputs, int after)
{
    for (int i = get_global_id(0); i < outputs; i += get_global_size(0)) {
        float sum = bias[i];
        for (int k = 0; k < inputs; ++k) sum += x[k] * weights[k * outputs + i];
        out[i] = activated(sum, after);
    }
}

/* Each channel times its own factor: squeeze and excitation. */
kernel void scale_channels(global const float *x, global const float *factors, global float *out,
                           int channels, int area)
{
    for (int i = get_global_id(0); i < channels * area; i += get_global_size(0))
        out[i] = x[i] * factors[i / area];
}

/* Words as they are, whatever they mean. */
kernel void keep(global const uint *from, global uint *to, int length)
{
    for (int i = get_global_id(0); i < length; i += get_global_size(0)) to[i] = from[i];
}

kernel void clear(global uint *words, int length)
{
    for (int i = get_global_id(0); i < length; i += get_global_size(0)) words[i] = 0;
}
