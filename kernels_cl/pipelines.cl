/* Kernels of the pipelines: images, finance, graphs, learning. Sizes of groups are 64. */

#define GROUP 64

kernel void square(global const float *x, global float *y, int length)
{
    int i = get_global_id(0);
    if (i < length) y[i] = x[i] * x[i];
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

/* Each group adds up every so many-th of the differences. */
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
