"""Known limits of drivers: what fails there on plain PyOpenCL queues too, and why.

Each is a driver, a part of the names of the tests that meet it, and the cause. What is listed here
was seen in a program without us; anything else that fails is ours to mend.
"""

from __future__ import annotations

LIMITS: tuple[tuple[str, str, str], ...] = (
    (
        "Rusticl",
        "test_independent_kernels_overlap_where_the_backend_can",
        "profiling gives all kernels of a queue in order the same interval, so that they seem to "
        "overlap; four kernels on one plain queue with profiling show it",
    ),
    (
        "Rusticl",
        "test_what_a_poisoned_launch_should_have_kept_is_not_read",
        "it builds a program with variables, and panics when a kernel of that is made; PyOpenCL "
        "alone shows it",
    ),
    (
        "Rusticl",
        "test_a_map_that_is_given_up_is_unmapped_when_it_has_run",
        "it refuses to unmap what a map that does not block has not reached yet; both commands on "
        "one plain queue show it",
    ),
    (
        "Rusticl",
        "test_a_run_from_outside_is_reported",
        "a command may say that it has not ended when a later one of its queue in order has; plain "
        "PyOpenCL shows it, so that a trace may end too early",
    ),
    (
        "Rusticl",
        "test_commands_on_queues_meet_in_lines",
        "a write into an image over a buffer leaves part of it as it was, on a plain queue, too",
    ),
    (
        "Oclgrind",
        "test_events_order_us_and_other_queues",
        "each thread that waits for a kernel runs it, without a lock; a plain program in which two "
        "threads wait for one event ends, too",
    ),
    (
        "Intel",
        "test_the_benchmark_compares_results_of_one_and_of_several",
        "it may stand still where several threads wait for events of queues without order; a plain "
        "program with four threads shows it",
    ),
    (
        "Intel",
        "test_random_kernels_do_what_the_oracle_says_and_inference_misses_nothing",
        "x[m] ^= m ^ 1 in a kernel of pool 36, where only work-item 0 comes to it, leaves x[m] as "
        "it was; one launch on a plain queue shows it",
    ),
)
