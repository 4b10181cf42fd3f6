/* Solvers that run until they have converged: conjugate gradients, power iteration, PageRank, k-means.

   Sums are made in two steps: partial_sums by many groups, then one work-item adds their results, in a
   fixed order, so that every run computes the same bits. GROUP is the size of groups. `go` is the word
   that decides whether there is another round. */

#ifndef GROUP
#define GROUP 64
#endif

inline float acs_group_sum(local float *part, float value) {
    const uint lane = get_local_id(0);
    part[lane] = value;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint half_of = GROUP / 2; half_of; half_of /= 2) {
        if (lane < half_of)
            part[lane] += part[lane + half_of];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    return part[0];
}

/* Add the results of the groups, in their order. */
inline float acs_sum_of(global const float *partial, uint groups) {
    float sum = 0;
    for (uint k = 0; k < groups; ++k)
        sum += partial[k];
    return sum;
}

/* ---- conjugate gradients; state: r.r, alpha, beta ---- */

kernel void multiply(global const uint *row, global const uint *column, global const float *value,
                     global const float *p, global float *q, global float *partial) {
    local float part[GROUP];
    const uint i = get_global_id(0);
    float sum = 0;
    for (uint k = row[i]; k < row[i + 1]; ++k)
        sum += value[k] * p[column[k]];
    q[i] = sum;
    const float all = acs_group_sum(part, sum * p[i]);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = all;
}

kernel void step_length(global const float *partial, global float *state, uint groups) {
    const float sum = acs_sum_of(partial, groups);
    state[1] = state[0] / sum;
}

kernel void advance(global const float *state, global const float *p, global const float *q,
                    global float *x, global float *r, global float *partial) {
    local float part[GROUP];
    const uint i = get_global_id(0);
    const float next = r[i] - state[1] * q[i];
    x[i] += state[1] * p[i];
    r[i] = next;
    const float all = acs_group_sum(part, next * next);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = all;
}

kernel void direction(global const float *partial, global float *state, global uint *go, uint groups,
                      float small) {
    const float sum = acs_sum_of(partial, groups);
    state[2] = sum / state[0];
    state[0] = sum;
    *go = sum > small;
}

kernel void turn(global const float *state, global const float *r, global float *p) {
    const uint i = get_global_id(0);
    p[i] = r[i] + state[2] * p[i];
}

/* ---- power iteration and PageRank; state: what the last round changed, the length ---- */

kernel void spread(global const uint *row, global const uint *column, global const float *value,
                   global const float *x, global float *y, global float *partial, float jump, float damp) {
    local float part[GROUP];
    const uint i = get_global_id(0);
    float sum = 0;
    for (uint k = row[i]; k < row[i + 1]; ++k)
        sum += value[k] * x[column[k]];
    sum = jump + damp * sum;
    y[i] = sum;
    const float all = acs_group_sum(part, sum * sum);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = all;
}

kernel void length_of(global const float *partial, global float *state, uint groups) {
    const float sum = acs_sum_of(partial, groups);
    state[1] = sqrt(sum);
}

kernel void settle(global const float *state, global const float *y, global float *x, global float *partial,
                   uint normed) {
    local float part[GROUP];
    const uint i = get_global_id(0);
    const float next = normed ? y[i] / state[1] : y[i];
    const float by = fabs(next - x[i]);
    x[i] = next;
    const float all = acs_group_sum(part, by);
    if (get_local_id(0) == 0)
        partial[get_group_id(0)] = all;
}

kernel void judge(global const float *partial, global float *state, global uint *go, uint groups, float small) {
    const float sum = acs_sum_of(partial, groups);
    state[0] = sum;
    *go = sum > small;
}

/* ---- k-means in the plane, until no point changes its mean ---- */

kernel void assign(global const float2 *point, global const float2 *mean, global uint *owner,
                   global uint *moved, uint means) {
    const uint i = get_global_id(0);
    uint best = 0;
    float least = INFINITY;
    for (uint k = 0; k < means; ++k) {
        const float2 d = point[i] - mean[k];
        const float far = d.x * d.x + d.y * d.y;
        if (far < least) {
            least = far;
            best = k;
        }
    }
    moved[i] = owner[i] != best;
    owner[i] = best;
}

kernel void centre(global const float2 *point, global const uint *owner, global const uint *moved,
                   global float2 *mean, global uint *changed, uint points) {
    local float part[GROUP];
    const uint k = get_group_id(0), lane = get_local_id(0);
    float x = 0, y = 0, many = 0, others = 0;
    for (uint i = lane; i < points; i += GROUP)
        if (owner[i] == k) {
            x += point[i].x;
            y += point[i].y;
            many += 1;
            others += moved[i];
        }
    x = acs_group_sum(part, x);
    barrier(CLK_LOCAL_MEM_FENCE);
    y = acs_group_sum(part, y);
    barrier(CLK_LOCAL_MEM_FENCE);
    many = acs_group_sum(part, many);
    barrier(CLK_LOCAL_MEM_FENCE);
    others = acs_group_sum(part, others);
    if (lane == 0) {
        if (many > 0)
            mean[k] = (float2)(x / many, y / many);
        changed[k] = others > 0;
    }
}

kernel void any_changed(global const uint *changed, global uint *go, uint means) {
    uint any = 0;
    for (uint k = 0; k < means; ++k)
        any |= changed[k];
    *go = any;
}
