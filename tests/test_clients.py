"""What `make clients` makes of outcomes, before any package is fetched."""

from __future__ import annotations

from acs_cl.benchmarks.figures import client_tables
from tests.client_list import CLIENTS, program_of
from tests.client_outcomes import side_by_side


def test_outcomes_are_compared_test_by_test() -> None:
    plain = {"a": "passed", "b": "failed", "c": "crashed", "d": "skipped", "e": "passed"}
    ours = {"a": "passed", "b": "failed", "c": "failed", "d": "skipped", "f": "passed"}
    found = side_by_side(plain, ours)
    assert found["plain"] == {"passed": 2, "failed": 1, "crashed": 1, "skipped": 1}
    assert found["different"] == {
        "c": ["crashed", "failed"],
        "e": ["passed", "missing"],
        "f": ["missing", "passed"],
    }
    assert found["passed on neither"] == ["b", "c"]


def test_a_table_names_what_ends_differently_and_what_is_slow() -> None:
    about = {"device": "P / D, 7", "pyopencl": "2", "acs_cl": "3", "python": "4"}
    tests = {"version": "1", "date": "2026-11-22", "suites": ["t.py"], "limit_s": 60, "with": about}
    tests |= side_by_side({"x": "passed"}, {"x": "crashed"})
    side = {"median_ms": 12.0, "speed": 0.84, "same_bits": False, "distance": 1e-7, "counts": {}}
    speed = {"runs": {"loop": {"plain": {"median_ms": 10.0, "rounds": 9}, "auto": side}}}
    later = tests | {"with": about | {"device": "P / E, 7"}}
    record = {
        "clients": {
            "one": {"tests": tests, "speed": {"D": speed}},
            "later": {"tests": later},
            "two": {"missing": "why not"},
        },
    }
    text = client_tables.tests_table(record)
    assert text.startswith(
        "P / D, 7: PyOpenCL 2, acs_cl 3, Python 4; P / E, 7: PyOpenCL 2, acs_cl 3, Python 4."
    )
    assert "| one 1 | 2026-11-22 | D | 60 s |" in text
    assert "| later 1 | 2026-11-22 | E | 60 s |" in text
    assert "`x`: passed, crashed" in text
    assert "why not" in text
    assert "| one: loop | D | 10.0 | 12.0 | 0.84x | within 1e-07 |" in client_tables.speed_table(
        record
    )


def test_every_client_has_tests_and_a_program() -> None:
    assert len(CLIENTS) >= 10
    for name, client in CLIENTS.items():
        assert client.suites or client.without, name
    assert sum(program_of(name) is not None for name in CLIENTS) >= 8
