/* Kernels of the synthetic graphs. A kernel turns what it reads into what it writes with rounds of
   xorshift, which lose no bit: an edge that was missed shows in the result. Item i reads item
   `span - 1 - i % span` of each array, so that all groups wait for all groups of those before. */

uint stir(uint x, uint rounds)
{
    for (uint i = 0; i < rounds; ++i) { x ^= x << 13; x ^= x >> 17; x ^= x << 5; }
    return x;
}

#define INTO global uint *out, uint task, uint rounds
#define BEGIN uint i = get_global_id(0), v = task + i;
#define BEGIN_READING(span) BEGIN uint m = span - 1 - i % span;
#define TAKE(value) v = v * 5u + (value);

/* `put` overwrites, `mix` updates. */
kernel void put0(INTO) { BEGIN out[i] = stir(v, rounds); }
kernel void mix0(INTO) { BEGIN TAKE(out[i]) out[i] = stir(v, rounds); }

kernel void put1(global const uint *a, INTO, uint span)
{ BEGIN_READING(span) TAKE(a[m]) out[i] = stir(v, rounds); }

kernel void mix1(global const uint *a, INTO, uint span)
{ BEGIN_READING(span) TAKE(out[i]) TAKE(a[m]) out[i] = stir(v, rounds); }

kernel void put2(global const uint *a, global const uint *b, INTO, uint span)
{ BEGIN_READING(span) TAKE(a[m]) TAKE(b[m]) out[i] = stir(v, rounds); }

kernel void put3(global const uint *a, global const uint *b, global const uint *c, INTO, uint span)
{ BEGIN_READING(span) TAKE(a[m]) TAKE(b[m]) TAKE(c[m]) out[i] = stir(v, rounds); }

kernel void put4(global const uint *a, global const uint *b, global const uint *c,
                 global const uint *d, INTO, uint span)
{ BEGIN_READING(span) TAKE(a[m]) TAKE(b[m]) TAKE(c[m]) TAKE(d[m]) out[i] = stir(v, rounds); }

/* The same on rectangles: rows of `width` items, `pitch` apart, that begin `lead` items in. */
#define AT(lead, width, pitch, n) ((lead) + (n) / (width) * (pitch) + (n) % (width))

kernel void mix0_at(INTO, uint lead, uint width, uint pitch)
{
    BEGIN
    uint at = AT(lead, width, pitch, i);
    TAKE(out[at])
    out[at] = stir(v, rounds);
}

kernel void mix1_at(global const uint *a, INTO, uint lead, uint width, uint pitch,
                    uint span, uint a_lead, uint a_width, uint a_pitch)
{
    BEGIN_READING(span)
    uint at = AT(lead, width, pitch, i);
    TAKE(out[at])
    TAKE(a[AT(a_lead, a_width, a_pitch, m)])
    out[at] = stir(v, rounds);
}
