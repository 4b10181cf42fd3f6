/* Kernels of neural networks, for one image at a time or several.
 *
 * Images are channels x images x rows x columns of float, so that parts of what is concatenated lie
 * one behind the other. Sequences are channels x images x tokens. Where a kernel takes `to`, its
 * output begins at that word: a part may begin where no sub-buffer does. Weights of a convolution
 * lie in blocks of four output channels: [outputs / 4][inputs][high][size][4], so that one load
 * serves four sums; those of a depthwise one are [channels][size][size]. Every kernel loops over
 * its outputs in steps of the global size, so that any number of work-items will do, and none has a
 * barrier: they all fit into one scheduler. What normalisation does to images is folded into
 * weights and biases. */

/* The activation after a layer: none (0), or one of these. */
#define RELU 1
#define RELU6 2
#define SIGMOID 3
#define SWISH 4
#define GELU 5

#define MAXIMUM 0 /* of pooling; else the mean */

float activated(float value, int how)
{
    if (how == RELU) return fmax(value, 0.0f);
    if (how == RELU6) return fmin(fmax(value, 0.0f), 6.0f);
    if (how == SIGMOID) return 1.0f / (1.0f + exp(-value));
    if (how == SWISH) return value / (1.0f + exp(-value));
    if (how == GELU)
        return 0.5f * value
               * (1.0f + tanh(0.79788456f * (value + 0.044715f * value * value * value)));
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

/* Any convolution, of `high` x `size`; `pad`, of columns, and `above` may be negative, which begins
 * that many pixels further in. */
kernel void convolve(global const float *x, global const float4 *weights,
                     global const float4 *bias, global float *out, int inputs, int height,
                     int width, int outputs, int rows, int columns, int size, int stride, int pad,
                     int before, int after, int high, int above, int images, int to)
{
    int each = rows * columns, area = images * each;
    for (int i = get_global_id(0); i < outputs / 4 * area; i += get_global_size(0)) {
        int block = i / area, at = i % area, image = at / each;
        int top = at % each / columns * stride - above, left = at % columns * stride - pad;
        int first_y = max(0, -top), last_y = min(high, height - top);
        int first_x = max(0, -left), last_x = min(size, width - left);
        float4 sum = bias[block];
        global const float4 *w = weights + block * inputs * high * size;
        for (int c = 0; c < inputs; ++c)
            for (int y = first_y; y < last_y; ++y) {
                int row = (c * images + image) * height + top + y;
                global const float *from = x + row * width + left;
                for (int k = first_x; k < last_x; ++k)
                    sum += before_it(from[k], before) * w[(c * high + y) * size + k];
            }
        store_four(out + to, block, at, area, sum, after);
    }
}

/* The same for four pixels of a row in one work-item. `columns` is a multiple of four. */
kernel void convolve_four(global const float *x, global const float4 *weights,
                          global const float4 *bias, global float *out, int inputs, int height,
                          int width, int outputs, int rows, int columns, int size, int stride,
                          int pad, int before, int after, int high, int above, int images, int to)
{
    int each = rows * columns, area = images * each, quarter = area / 4;
    for (int i = get_global_id(0); i < outputs / 4 * quarter; i += get_global_size(0)) {
        int block = i / quarter, at = i % quarter * 4, image = at / each;
        int top = at % each / columns * stride - above, left = at % columns * stride - pad;
        int first_y = max(0, -top), last_y = min(high, height - top);
        int inside = left >= 0 && left + 3 * stride + size <= width;
        float4 a = bias[block], b = a, c = a, d = a;
        for (int n = 0; n < inputs; ++n)
            for (int y = first_y; y < last_y; ++y) {
                global const float *from = x + ((n * images + image) * height + top + y) * width;
                global const float4 *w = weights + ((block * inputs + n) * high + y) * size;
                for (int k = 0; k < size; ++k) {
                    int p = left + k, q = p + stride, r = q + stride, s = r + stride;
                    float4 value = inside ? (float4)(from[p], from[q], from[r], from[s])
                                          : (float4)(p >= 0 && p < width ? from[p] : 0.0f,
                                                     q >= 0 && q < width ? from[q] : 0.0f,
                                                     r >= 0 && r < width ? from[r] : 0.0f,
                                                     s >= 0 && s < width ? from[s] : 0.0f);
                    if (before) value = fmax(value, (float4)(0.0f));
                    a += value.x * w[k];
                    b += value.y * w[k];
                    c += value.z * w[k];
                    d += value.w * w[k];
                }
            }
        store_four(out + to, block, at, area, a, after);
        store_four(out + to, block, at + 1, area, b, after);
        store_four(out + to, block, at + 2, area, c, after);
        store_four(out + to, block, at + 3, area, d, after);
    }
}

/* A convolution of size 1 and stride 1: a product of matrices. Four sums at a time, so that loads
 * need not wait for each other. */
kernel void pointwise(global const float *x, global const float4 *weights,
                      global const float4 *bias, global float *out, int inputs, int area,
                      int outputs, int before, int after, int to)
{
    for (int i = get_global_id(0); i < outputs / 4 * area; i += get_global_size(0)) {
        int block = i / area, at = i % area, k = 0;
        float4 a = bias[block], b = (float4)(0.0f), c = b, d = b;
        global const float *from = x + at;
        global const float4 *w = weights + block * inputs;
        for (; k + 4 <= inputs; k += 4) {
            float4 value = (float4)(from[k * area], from[(k + 1) * area], from[(k + 2) * area],
                                    from[(k + 3) * area]);
            if (before) value = fmax(value, (float4)(0.0f));
            a += value.x * w[k];
            b += value.y * w[k + 1];
            c += value.z * w[k + 2];
            d += value.w * w[k + 3];
        }
        for (; k < inputs; ++k) a += before_it(from[k * area], before) * w[k];
        store_four(out + to, block, at, area, (a + b) + (c + d), after);
    }
}

/* The same for four pixels in one work-item. */
kernel void pointwise_four(global const float *x, global const float4 *weights,
                           global const float4 *bias, global float *out, int inputs, int area,
                           int outputs, int before, int after, int to)
{
    int quarter = area / 4;
    global const float4 *fours = (global const float4 *)x;
    for (int i = get_global_id(0); i < outputs / 4 * quarter; i += get_global_size(0)) {
        int block = i / quarter, at = i % quarter;
        float4 a = bias[block], b = a, c = a, d = a;
        global const float4 *w = weights + block * inputs;
        for (int k = 0; k < inputs; ++k) {
            float4 value = fours[k * quarter + at];
            if (before) value = fmax(value, (float4)(0.0f));
            a += value.x * w[k];
            b += value.y * w[k];
            c += value.z * w[k];
            d += value.w * w[k];
        }
        store_four(out + to, block, 4 * at, area, a, after);
        store_four(out + to, block, 4 * at + 1, area, b, after);
        store_four(out + to, block, 4 * at + 2, area, c, after);
        store_four(out + to, block, 4 * at + 3, area, d, after);
    }
}

/* A work-item has up to four pixels of a row. */
kernel void depthwise(global const float *x, global const float *weights, global const float *bias,
                      global float *out, int channels, int height, int width, int rows, int columns,
                      int size, int stride, int pad, int before, int after,
                      int images)
{
    int strips = (columns + 3) / 4, of_channel = images * rows * strips;
    for (int i = get_global_id(0); i < channels * of_channel; i += get_global_size(0)) {
        int channel = i / of_channel, line = i / strips, column = i % strips * 4;
        int image = line / rows, row = line % rows; /* of all channels' images */
        int top = row * stride - pad, left = column * stride - pad;
        int first_y = max(0, -top), last_y = min(size, height - top);
        int inside = left >= 0 && left + 3 * stride + size <= width;
        float4 sum = (float4)(bias[channel]);
        for (int y = first_y; y < last_y; ++y) {
            global const float *from = x + (image * height + top + y) * width;
            global const float *w = weights + (channel * size + y) * size;
            for (int k = 0; k < size; ++k) {
                int p = left + k, q = p + stride, r = q + stride, s = r + stride;
                float4 value = inside ? (float4)(from[p], from[q], from[r], from[s])
                                      : (float4)(p >= 0 && p < width ? from[p] : 0.0f,
                                                 q >= 0 && q < width ? from[q] : 0.0f,
                                                 r >= 0 && r < width ? from[r] : 0.0f,
                                                 s >= 0 && s < width ? from[s] : 0.0f);
                if (before) value = fmax(value, (float4)(0.0f));
                sum += value * w[k];
            }
        }
        global float *to = out + line * columns + column;
        to[0] = activated(sum.x, after);
        if (column + 1 < columns) to[1] = activated(sum.y, after);
        if (column + 2 < columns) to[2] = activated(sum.z, after);
        if (column + 3 < columns) to[3] = activated(sum.w, after);
    }
}

/* The largest or the mean of the pixels of a window that are inside the image. */
kernel void pool(global const float *x, global float *out, int channels, int height, int width,
                 int rows, int columns, int size, int stride, int pad, int how,
                 int images, int to)
{
    int area = rows * columns;
    for (int i = get_global_id(0); i < channels * images * area; i += get_global_size(0)) {
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
        out[to + i] = how == MAXIMUM ? most : sum / ((last_y - first_y) * (last_x - first_x));
    }
}

/* A weighted sum of one to four arrays. `count`: how many there are. */
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

/* Every output from every input, for each image; weights are [inputs][outputs]. */
kernel void dense(global const float *x, global const float *weights, global const float *bias,
                  global float *out, int inputs, int outputs, int after, int images)
{
    for (int i = get_global_id(0); i < outputs * images; i += get_global_size(0)) {
        int at = i / images;
        float sum = bias[at];
        for (int k = 0; k < inputs; ++k)
            sum += x[k * images + i % images] * weights[k * outputs + at];
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

/* Copy words, whatever they mean. */
kernel void keep(global const uint *x, global uint *out, int length, int from, int to)
{
    for (int i = get_global_id(0); i < length; i += get_global_size(0)) out[to + i] = x[from + i];
}

kernel void clear(global uint *words, int length)
{
    for (int i = get_global_id(0); i < length; i += get_global_size(0)) words[i] = 0;
}

/* ---- Sequences and tables -------------------------------------------------------------------- */

/* Rows of a table, by number: a column of the output for each number, from word `from` on. */
kernel void lookup(global const float *numbers, global const float *table, global float *out,
                   int width, int many, int from, int to)
{
    for (int i = get_global_id(0); i < width * many; i += get_global_size(0))
        out[to + i] = table[(int)numbers[from + i % many] * width + i / many];
}

/* Give every column of channels x area the same size, and mean zero if `centred`. */
kernel void normalise(global const float *x, global const float *scale, global const float *shift,
                      global float *out, int channels, int area, int centred)
{
    for (int i = get_global_id(0); i < area; i += get_global_size(0)) {
        float sum = 0, squares = 0;
        for (int c = 0; c < channels; ++c) {
            sum += x[c * area + i];
            squares += x[c * area + i] * x[c * area + i];
        }
        float mean = centred ? sum / channels : 0.0f;
        float by = rsqrt(fmax(squares / channels - mean * mean, 0.0f) + 1e-6f);
        for (int c = 0; c < channels; ++c)
            out[c * area + i] = (x[c * area + i] - mean) * by * scale[c] + shift[c];
    }
}

/* How much each token of `queries` has to do with each of `keys`: [heads][images][keys][queries].
 * `bias` is [heads][keys][queries], if there is one. */
kernel void scores(global const float *query, global const float *key, global const float *bias,
                   global float *out, int heads, int width, int images, int queries, int keys,
                   float scale, int biased)
{
    int each = keys * queries, wide = images * queries, far = images * keys;
    for (int i = get_global_id(0); i < heads * images * each; i += get_global_size(0)) {
        int head = i / (images * each), image = i / each % images;
        int at = i % each, q = at % queries, k = at / queries;
        global const float *a = query + head * width * wide + image * queries + q;
        global const float *b = key + head * width * far + image * keys + k;
        float sum = 0;
        for (int d = 0; d < width; ++d) sum += a[d * wide] * b[d * far];
        sum *= scale;
        out[i] = biased ? sum + bias[head * each + at] : sum;
    }
}

/* The share of each key in the result of a query. Shares sum to one. */
kernel void shares(global const float *x, global float *out, int many, int queries, int keys)
{
    for (int i = get_global_id(0); i < many * queries; i += get_global_size(0)) {
        int first = i / queries * keys * queries + i % queries;
        float most = -INFINITY, sum = 0;
        for (int k = 0; k < keys; ++k) most = fmax(most, x[first + k * queries]);
        for (int k = 0; k < keys; ++k) sum += exp(x[first + k * queries] - most);
        for (int k = 0; k < keys; ++k)
            out[first + k * queries] = exp(x[first + k * queries] - most) / sum;
    }
}

/* The result of each query from the values, by these shares. */
kernel void gather(global const float *share, global const float *values, global float *out,
                   int heads, int width, int images, int queries, int keys)
{
    int wide = images * queries;
    for (int i = get_global_id(0); i < heads * width * wide; i += get_global_size(0)) {
        int channel = i / wide, image = i % wide / queries;
        int from = (channel / width * images + image) * keys * queries + i % queries;
        int of = (channel * images + image) * keys;
        float sum = 0;
        for (int k = 0; k < keys; ++k) sum += share[from + k * queries] * values[of + k];
        out[i] = sum;
    }
}

/* Half of the difference between the square of a sum of rows of a table and the sum of their squares. */
kernel void interact(global const float *x, global float *out, int fields, int width, int images)
{
    for (int i = get_global_id(0); i < images; i += get_global_size(0)) {
        float found = 0;
        for (int d = 0; d < width; ++d) {
            float sum = 0, squares = 0;
            for (int f = 0; f < fields; ++f) {
                float value = x[(f * width + d) * images + i];
                sum += value;
                squares += value * value;
            }
            found += sum * sum - squares;
        }
        out[i] = 0.5f * found;
    }
}

/* ---- InstaNAS: branches that a controller picks ---------------------------------------------- */

#define BRANCHES 5

/* Which branches of each stage are open, and the share of each in their mean. If none would be, the
 * closest one is. Features, weights and thresholds are such multiples of powers of two that all sums
 * are exact, so every device decides alike. Weights are [stages][BRANCHES][inputs]. */
kernel void pick(global const float *features, global const float *weights,
                 global const float *thresholds, global uint *flags, global float *shares,
                 int stages, int inputs)
{
    for (int stage = get_global_id(0); stage < stages; stage += get_global_size(0)) {
        float most = -INFINITY;
        int best = 0, open = 0;
        for (int branch = stage * BRANCHES; branch < (stage + 1) * BRANCHES; ++branch) {
            float sum = -thresholds[branch];
            for (int k = 0; k < inputs; ++k) sum += features[k] * weights[branch * inputs + k];
            flags[branch] = sum > 0;
            open += sum > 0;
            if (sum > most) {
                most = sum;
                best = branch;
            }
        }
        if (open == 0) flags[best] = open = 1;
        for (int branch = stage * BRANCHES; branch < (stage + 1) * BRANCHES; ++branch)
            shares[branch] = flags[branch] ? 1.0f / open : 0.0f;
    }
}

/* The mean of the open branches of a stage. Nothing of a closed one is read. If `residual`, e is the
 * input of the stage: it is added to the output of each branch, and is itself the last one. */
kernel void mean_of_open(global const float *a, global const float *b, global const float *c,
                         global const float *d, global const float *e, global const float *shares,
                         global float *out, int stage, int length, int residual)
{
    global const float *share = shares + stage * BRANCHES;
    float last = residual ? 1.0f : share[4];
    for (int i = get_global_id(0); i < length; i += get_global_size(0)) {
        float sum = 0;
        if (share[0] > 0) sum += share[0] * a[i];
        if (share[1] > 0) sum += share[1] * b[i];
        if (share[2] > 0) sum += share[2] * c[i];
        if (share[3] > 0) sum += share[3] * d[i];
        if (last > 0) sum += last * e[i];
        out[i] = sum;
    }
}

/* ---- Dynamic Routing: nodes of a lattice that send to their neighbours ----------------------- */

#define SAME 0
#define UP 1
#define DOWN 2
#define ALIVE 3

/* Where a node sends to, from the means of its channels: a weight for each direction (zero: not open),
 * and whether any is open. `may` has a bit for each direction that exists. Weights are [inputs][4]. By
 * one work-item. */
kernel void decide(global const float *features, global const float *weights,
                   global const float *bias, global float *values, global uint *flags, int inputs,
                   int may)
{
    if (get_global_id(0) != 0) return;
    float4 sum = vload4(0, bias);
    for (int k = 0; k < inputs; ++k) sum += features[k] * vload4(k, weights);
    float found[3];
    found[SAME] = may >> SAME & 1 ? fmax(tanh(sum.x), 0.0f) : 0.0f;
    found[UP] = may >> UP & 1 ? fmax(tanh(sum.y), 0.0f) : 0.0f;
    found[DOWN] = may >> DOWN & 1 ? fmax(tanh(sum.z), 0.0f) : 0.0f;
    uint alive = 0;
    for (int k = 0; k < 3; ++k) {
        values[k] = found[k];
        flags[k] = found[k] > 0;
        alive |= found[k] > 0;
    }
    flags[ALIVE] = alive;
}

/* Whether anything is sent to a node, by its neighbours of the layer before. */
kernel void any_of(global const uint *same, global const uint *below, global const uint *above,
                   global uint *out, int may)
{
    if (get_global_id(0) != 0) return;
    uint found = 0;
    if (may >> SAME & 1) found |= same[SAME];
    if (may >> UP & 1) found |= below[UP];
    if (may >> DOWN & 1) found |= above[DOWN];
    out[0] = found;
}

/* The sum of what arrives at a node, each weighted by its sender's gate: from the same scale, from the
 * one of half the size, from the one of twice the size. Then ReLU6, so that values keep their size over
 * many layers. Nothing that was not sent is read. */
kernel void join(global const float *same, global const float *below, global const float *above,
                 global const float *of_same, global const float *of_below,
                 global const float *of_above, global float *out, int channels, int rows,
                 int columns, int may)
{
    float by_same = may >> SAME & 1 ? of_same[SAME] : 0.0f;
    float by_below = may >> UP & 1 ? of_below[UP] : 0.0f;
    float by_above = may >> DOWN & 1 ? of_above[DOWN] : 0.0f;
    int area = rows * columns;
    for (int i = get_global_id(0); i < channels * area; i += get_global_size(0)) {
        int c = i / area, y = i % area / columns, x = i % columns;
        float sum = 0;
        if (by_same > 0) sum += by_same * same[i];
        if (by_below > 0)
            sum += by_below * below[(c * (rows / 2) + y / 2) * (columns / 2) + x / 2];
        if (by_above > 0) sum += by_above * above[i];
        out[i] = activated(sum, RELU6);
    }
}

/* ---- CondConv: weights that are mixed for each image ----------------------------------------- */

#define EXPERTS 4
#define FLOOR 0.35f

/* How much each expert counts, from the means of the channels. Experts below FLOOR are left out, except
 * the largest. After the four comes the number of the first that is in. By one work-item. */
kernel void route(global const float *features, global const float *weights,
                  global const float *bias, global float *routing, global uint *flags, int inputs)
{
    if (get_global_id(0) != 0) return;
    float4 sum = vload4(0, bias);
    for (int k = 0; k < inputs; ++k) sum += features[k] * vload4(k, weights);
    vstore4(1.0f / (1.0f + exp(-sum)), 0, routing);
    float most = fmax(fmax(routing[0], routing[1]), fmax(routing[2], routing[3]));
    float least = fmin(most, FLOOR);
    int first = EXPERTS;
    for (int k = EXPERTS - 1; k >= 0; --k) {
        flags[k] = routing[k] >= least;
        if (flags[k]) first = k;
    }
    routing[EXPERTS] = first;
}

/* Adds an expert's weights to the mixture; the first begins it. */
kernel void add_expert(global const float *weights, global const float *routing,
                       global float *out, int expert, int length)
{
    float by = routing[expert];
    int first = (int)routing[EXPERTS] == expert;
    for (int i = get_global_id(0); i < length; i += get_global_size(0))
        out[i] = first ? by * weights[i] : out[i] + by * weights[i];
}
