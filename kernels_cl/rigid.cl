/* Rigid bodies in maximal coordinates, many environments side by side.
 *
 * A work-item is one environment (dimension 0) of one element of a group (dimension 1): a part, a
 * joint, a pair of colliders. State is stored number by number, with `n` environments for each:
 * a pose has POSE numbers (place, turn as x y z w), a motion MOTION (velocity, spin), an impulse as
 * many as a motion. Joints, actuators and contacts write impulses into slots of their own;
 * `accumulate` gathers them. Forces are continuous in the state, so that results that are rounded
 * differently stay close.
 *
 * DT, SKIN, SLOW, FRICTION, MARGIN and the lengths of rows are given by rigid_layout.py.
 */

#pragma OPENCL FP_CONTRACT OFF

typedef struct {
    float3 place;
    float4 turn;
    float3 velocity;
    float3 spin;
} body;

float3 rotated(float4 q, float3 v)
{
    float3 twice = 2 * cross(q.xyz, v);
    return v + q.w * twice + cross(q.xyz, twice);
}

float4 times(float4 a, float4 b)
{
    return (float4)(a.w * b.xyz + b.w * a.xyz + cross(a.xyz, b.xyz), a.w * b.w - dot(a.xyz, b.xyz));
}

float4 back(float4 q) { return (float4)(-q.xyz, q.w); }

float3 row3(global const float *row) { return (float3)(row[0], row[1], row[2]); }

float3 load3(global const float *x, int n) { return (float3)(x[0], x[n], x[2 * n]); }

void store3(global float *x, int n, float3 v)
{
    x[0] = v.x;
    x[n] = v.y;
    x[2 * n] = v.z;
}

body load(global const float *poses, global const float *motions, int which, int env, int n)
{
    global const float *pose = poses + which * POSE * n + env;
    global const float *motion = motions + which * MOTION * n + env;
    body b;
    b.place = load3(pose, n);
    b.turn = (float4)(load3(pose + 3 * n, n), pose[6 * n]);
    b.velocity = load3(motion, n);
    b.spin = load3(motion + 3 * n, n);
    return b;
}

void store(global float *impulses, int slot, int env, int n, float3 force, float3 torque)
{
    global float *impulse = impulses + slot * MOTION * n + env;
    store3(impulse, n, DT * force);
    store3(impulse + 3 * n, n, DT * torque);
}

float3 velocity_at(body b, float3 arm) { return b.velocity + cross(b.spin, arm); }

/* ---- what a step begins with ------------------------------------------------------------------ */

/* The next action of each actuator, and a new leaf for the flags, which counts their old values. */
kernel void act(global const float *rates, global float *phases, global float *actions,
                global uint *flags, global uint *counts, int groups, int n)
{
    int env = get_global_id(0), actuator = get_global_id(1), i = actuator * n + env;
    float phase = phases[i] + rates[actuator];
    phases[i] = phase > TURN ? phase - TURN : phase;
    actions[i] = sin(phase);
    if (actuator == 0)
        for (int group = env; group < groups; group += n) {
            counts[group] += flags[group * LINE];
            flags[group * LINE] = 0;
        }
}

/* Whether the watched part has fallen, in each environment and in any. */
kernel void judge(global const float *pose, global uint *fallen, global uint *any, float low,
                  float upright, float far, int n)
{
    int env = get_global_id(0);
    float3 place = load3(pose + env, n);
    float4 turn = (float4)(load3(pose + 3 * n + env, n), pose[6 * n + env]);
    float up = rotated(turn, (float3)(0, 0, 1)).z;
    int stands = place.z >= low && up >= upright && hypot(place.x, place.y) <= far;
    fallen[env] = !stands;
    if (!stands) atomic_or(any, 1u);
}

/* A new episode where the last one has ended. */
kernel void begin_again(global const uint *fallen, global const float *starts, global float *poses,
                        global float *motions, global uint *episodes, int n)
{
    int env = get_global_id(0), part = get_global_id(1);
    if (!fallen[env]) return;
    for (int i = 0; i < POSE; ++i)
        poses[(part * POSE + i) * n + env] = starts[(part * POSE + i) * n + env];
    for (int i = 0; i < MOTION; ++i) motions[(part * MOTION + i) * n + env] = 0;
    if (part == 0) episodes[env] += 1;
}

/* ---- the broad phase -------------------------------------------------------------------------- */

/* How far out a part may be until it is checked again. */
float reach(body b, global const float *shape, float time)
{
    return shape[7] + time * (length(b.velocity) + shape[7] * length(b.spin));
}

kernel void near_plane(global const float *shapes, global const float *poses,
                       global const float *motions, global uint *live, float time, int n)
{
    int env = get_global_id(0), part = get_global_id(1);
    body b = load(poses, motions, part, env, n);
    if (b.place.z - reach(b, shapes + part * ROW, time) < MARGIN) atomic_or(live, 1u);
}

kernel void near_pair(global const int *pairs, global const float *shapes_a,
                      global const float *shapes_b, global const float *poses_a,
                      global const float *poses_b, global const float *motions_a,
                      global const float *motions_b, global uint *live, float time, int n)
{
    int env = get_global_id(0), pair = get_global_id(1);
    int i = pairs[2 * pair], j = pairs[2 * pair + 1];
    body a = load(poses_a, motions_a, i, env, n), b = load(poses_b, motions_b, j, env, n);
    float both = reach(a, shapes_a + i * ROW, time) + reach(b, shapes_b + j * ROW, time);
    if (length(a.place - b.place) - both < MARGIN) atomic_or(live, 1u);
}

/* ---- joints ----------------------------------------------------------------------------------- */

/* The axes of a joint in the world, and its angles: turns about x, then y, then z. */
typedef struct {
    float3 axis[3];
    float angle[3];
} pivot;

pivot pivot_of(body parent, body child, global const float *row)
{
    float4 frame = (float4)(row3(row + 6), row[9]);
    float4 fixed = times(parent.turn, frame), moved = times(child.turn, frame);
    float4 q = times(back(fixed), moved);
    pivot p;
    float a = atan2(2 * (q.x * q.w - q.y * q.z), 1 - 2 * (q.x * q.x + q.y * q.y));
    p.angle[0] = a;
    p.angle[1] = asin(clamp(2 * (q.x * q.z + q.y * q.w), -1.0f, 1.0f));
    p.angle[2] = atan2(2 * (q.z * q.w - q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z));
    p.axis[0] = rotated(fixed, (float3)(1, 0, 0));
    p.axis[1] = rotated(fixed, (float3)(0, cos(a), sin(a)));
    p.axis[2] = rotated(moved, (float3)(0, 0, 1));
    return p;
}

/* A spring between both anchors, which acts where they ought to meet. Springs also act against motion
   that the joint does not allow, and beyond the limits of motion that it does. */
void joint(int dof, global const float *rows, int parents, global const float *poses_p,
           global const float *poses_c, global const float *motions_p,
           global const float *motions_c, global float *out_p, global float *out_c, int n)
{
    int env = get_global_id(0), which = get_global_id(1);
    global const float *row = rows + which * JOINT_ROW;
    body parent = load(poses_p, motions_p, which % parents, env, n);
    body child = load(poses_c, motions_c, which, env, n);
    float3 arm_p = rotated(parent.turn, row3(row)), arm_c = rotated(child.turn, row3(row + 3));
    float3 apart = parent.place + arm_p - child.place - arm_c;
    float3 faster = velocity_at(parent, arm_p) - velocity_at(child, arm_c);
    float3 force = row[10] * apart + row[11] * faster;
    pivot p = pivot_of(parent, child, row);
    float3 torque = row[13] * (parent.spin - child.spin);
    for (int i = 0; i < 3; ++i) {
        float angle = p.angle[i];
        float beyond = angle - clamp(angle, row[15 + 2 * i], row[16 + 2 * i]);
        torque -= (i < dof ? row[14] * beyond : row[12] * angle) * p.axis[i];
    }
    float3 half_way = 0.5f * apart;
    store(out_p, which, env, n, -force, -torque - cross(arm_p - half_way, force));
    store(out_c, which, env, n, force, torque + cross(arm_c + half_way, force));
}

void actuator(int dof, global const float *rows, int parents, global const float *poses_p,
              global const float *poses_c, global const float *motions_p,
              global const float *motions_c, global const float *actions, global float *out_p,
              global float *out_c, int first, int n)
{
    int env = get_global_id(0), which = get_global_id(1);
    global const float *row = rows + which * JOINT_ROW;
    body parent = load(poses_p, motions_p, which % parents, env, n);
    body child = load(poses_c, motions_c, which, env, n);
    pivot p = pivot_of(parent, child, row);
    float3 torque = (float3)(0, 0, 0);
    for (int i = 0; i < dof; ++i)
        torque += row[21 + i] * actions[(first + which * dof + i) * n + env] * p.axis[i];
    store(out_p, which, env, n, (float3)(0, 0, 0), -torque);
    store(out_c, which, env, n, (float3)(0, 0, 0), torque);
}

#define JOINT(dof)                                                                                 \
    kernel void joint_##dof(global const float *rows, int parents, global const float *poses_p,    \
                            global const float *poses_c, global const float *motions_p,            \
                            global const float *motions_c, global float *out_p,                    \
                            global float *out_c, int n)                                            \
    {                                                                                              \
        joint(dof, rows, parents, poses_p, poses_c, motions_p, motions_c, out_p, out_c, n);        \
    }                                                                                              \
    kernel void actuator_##dof(global const float *rows, int parents,                              \
                               global const float *poses_p, global const float *poses_c,           \
                               global const float *motions_p, global const float *motions_c,       \
                               global const float *actions, global float *out_p,                   \
                               global float *out_c, int first, int n)                              \
    {                                                                                              \
        actuator(dof, rows, parents, poses_p, poses_c, motions_p, motions_c, actions, out_p,       \
                 out_c, first, n);                                                                 \
    }

JOINT(1)
JOINT(2)
JOINT(3)

/* ---- contacts --------------------------------------------------------------------------------- */

/* The force on a body that has sunk in by `depth` and moves at `v` against what it touches. Its
   friction is never more than what damps it. */
float3 push(float depth, float3 normal, float3 v, float stiffness, float damping)
{
    float along = dot(v, normal);
    float sunk = max(depth, 0.0f);
    float held = min(sunk / SKIN, 1.0f) * damping;
    float pressure = max(stiffness * sunk - held * along, 0.0f);
    float3 slip = v - along * normal;
    return pressure * normal - min(FRICTION * pressure / (length(slip) + SLOW), held) * slip;
}

/* What the ground does to a ball in a body, its middle at `arm`. */
void on_ground(body b, float3 arm, float radius, float stiffness, float damping, float3 *force,
               float3 *torque)
{
    float3 at = arm - (float3)(0, 0, radius);
    float3 f = push(-(b.place.z + at.z), (float3)(0, 0, 1), velocity_at(b, at), stiffness, damping);
    *force += f;
    *torque += cross(at, f);
}

kernel void sphere_plane(global const float *shapes, global const float *poses,
                         global const float *motions, global float *out, float stiffness,
                         float damping, int n)
{
    int env = get_global_id(0), part = get_global_id(1);
    global const float *shape = shapes + part * ROW;
    body b = load(poses, motions, part, env, n);
    float3 force = (float3)(0, 0, 0), torque = (float3)(0, 0, 0);
    on_ground(b, rotated(b.turn, row3(shape + 3)), shape[6], stiffness, damping, &force, &torque);
    store(out, part, env, n, force, torque);
}

kernel void capsule_plane(global const float *shapes, global const float *poses,
                          global const float *motions, global float *out, float stiffness,
                          float damping, int n)
{
    int env = get_global_id(0), part = get_global_id(1);
    global const float *shape = shapes + part * ROW;
    body b = load(poses, motions, part, env, n);
    float3 force = (float3)(0, 0, 0), torque = (float3)(0, 0, 0);
    for (int end = 0; end < 2; ++end) {
        float3 arm = rotated(b.turn, row3(shape + 3 * end));
        on_ground(b, arm, shape[6], stiffness, damping, &force, &torque);
    }
    store(out, part, env, n, force, torque);
}

kernel void box_plane(global const float *shapes, global const float *poses,
                      global const float *motions, global float *out, float stiffness,
                      float damping, int n)
{
    int env = get_global_id(0), part = get_global_id(1);
    global const float *shape = shapes + part * ROW;
    body b = load(poses, motions, part, env, n);
    float3 half_side = row3(shape + 8);
    float3 force = (float3)(0, 0, 0), torque = (float3)(0, 0, 0);
    for (int corner = 0; corner < 8; ++corner) {
        float3 sign = (float3)(corner & 1 ? 1 : -1, corner & 2 ? 1 : -1, corner & 4 ? 1 : -1);
        on_ground(b, rotated(b.turn, sign * half_side), 0, stiffness, damping, &force, &torque);
    }
    store(out, part, env, n, force, torque);
}

/* The points of two segments that are nearest to each other (Ericson, "Real-Time Collision
   Detection", 5.1.9), then two balls there. Where segments are nearly parallel, the points go to the
   middle instead of jumping from end to end. */
kernel void capsule_capsule(global const int *pairs, global const float *shapes_a,
                            global const float *shapes_b, global const float *poses_a,
                            global const float *poses_b, global const float *motions_a,
                            global const float *motions_b, global float *out_a,
                            global float *out_b, float stiffness, float damping, int n)
{
    int env = get_global_id(0), pair = get_global_id(1);
    int i = pairs[2 * pair], j = pairs[2 * pair + 1];
    global const float *shape_a = shapes_a + i * ROW, *shape_b = shapes_b + j * ROW;
    body a = load(poses_a, motions_a, i, env, n), b = load(poses_b, motions_b, j, env, n);
    float3 from_a = rotated(a.turn, row3(shape_a)), from_b = rotated(b.turn, row3(shape_b));
    float3 along_a = rotated(a.turn, row3(shape_a + 3)) - from_a;
    float3 along_b = rotated(b.turn, row3(shape_b + 3)) - from_b;
    float3 between = a.place + from_a - b.place - from_b;
    float aa = dot(along_a, along_a), bb = dot(along_b, along_b), ab = dot(along_a, along_b);
    float ar = dot(along_a, between), br = dot(along_b, between);
    float even = 0.02f * aa * bb + 1e-6f;
    float s = clamp((ab * br - ar * bb + 0.5f * even) / (aa * bb - ab * ab + even), 0.0f, 1.0f);
    float t = (ab * s + br) / (bb + 1e-6f);
    float on_b = clamp(t, 0.0f, 1.0f);
    float on_a = clamp((ab * on_b - ar) / (aa + 1e-6f), 0.0f, 1.0f);
    float3 apart = between + on_a * along_a - on_b * along_b;
    float far = length(apart);
    float3 normal = apart / (far + 1e-6f);
    float3 arm_a = from_a + on_a * along_a - shape_a[6] * normal;
    float3 arm_b = from_b + on_b * along_b + shape_b[6] * normal;
    float3 point = 0.5f * (a.place + arm_a + b.place + arm_b); /* one for both: spin is kept */
    arm_a = point - a.place;
    arm_b = point - b.place;
    float3 v = velocity_at(a, arm_a) - velocity_at(b, arm_b);
    float3 force = push(shape_a[6] + shape_b[6] - far, normal, v, stiffness, damping);
    store(out_a, pair, env, n, force, cross(arm_a, force));
    store(out_b, pair, env, n, -force, -cross(arm_b, force));
}

/* ---- motion ----------------------------------------------------------------------------------- */

/* Forces on a body change its motion. Slots whose flag is not set have nothing new in them. */
kernel void accumulate(global const int *table, global const float *masses,
                       global const uint *flags, global const float *impulses,
                       global float *motions, int parts, int n)
{
    int env = get_global_id(0), part = get_global_id(1);
    global const int *entries = table + parts + 1;
    global const float *mass = masses + part * ROW;
    float3 straight = (float3)(0, 0, 0), turning = (float3)(0, 0, 0);
    for (int i = table[part]; i < table[part + 1]; ++i) {
        int slot = entries[2 * i], flag = entries[2 * i + 1];
        if (flag < 0 || flags[flag * LINE]) {
            global const float *impulse = impulses + slot * MOTION * n + env;
            straight += load3(impulse, n);
            turning += load3(impulse + 3 * n, n);
        }
    }
    global float *motion = motions + part * MOTION * n + env;
    float3 velocity = load3(motion, n) + mass[0] * straight + (float3)(0, 0, DT * mass[2]);
    float3 spin = load3(motion + 3 * n, n) + mass[1] * turning;
    store3(motion, n, row3(mass + 3) * velocity);
    store3(motion + 3 * n, n, row3(mass + 6) * spin);
}

/* Where bodies are a little later. */
kernel void integrate(global const float *motions, global float *poses, int n)
{
    int env = get_global_id(0), part = get_global_id(1);
    body b = load(poses, motions, part, env, n);
    global float *pose = poses + part * POSE * n + env;
    float4 turn = b.turn + 0.5f * DT * times((float4)(b.spin, 0), b.turn);
    turn = turn / sqrt(dot(turn, turn));
    store3(pose, n, b.place + DT * b.velocity);
    store3(pose + 3 * n, n, turn.xyz);
    pose[6 * n] = turn.w;
}
