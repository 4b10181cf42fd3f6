// What random programs include.
#define MIXED(x, a) \
    do { size_t i = get_global_id(0); x[i] = (x[i] >> 3) + a * (uint)(i + 1); } while (0)
