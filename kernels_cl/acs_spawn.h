/* Work that creates work: `n` items of function(item, ...), some time before this launch counts as ended.

       #include <acs_spawn.h>

       void visit(uint item, global const int *to, global int *dist, uint first) {
           dist[to[first + item]] = 1;
       }
       kernel void expand(global const int *row, global const int *to, global int *dist) {
           const uint from = get_global_id(0), first = row[from];
           ACS_SPAWN(visit, row[from + 1] - first, to, dist, first);
       }

   A launch of the scheduler may run the items later, in any order, and by any group. Elsewhere this
   is a loop. So nobody may read what the items write but launches behind this one, and other items
   write it with atomics at most. An item is the first argument of the function, a uint. There is at
   least one argument more. Arguments are evaluated for each item: give names and numbers.

   acs_cl brings this file along: `rt.build` puts the line below in the place of the #include. */

#define ACS_SPAWN(function, n, ...) for (uint acs_child = 0u, acs_children = (n); acs_child < acs_children; ++acs_child) function(acs_child, __VA_ARGS__)
