"""Tests of the checks: faults and legal variants built into the reference, and the runs that are judged on them.

In: contracts, the reference, the same planner, runner and judge that users run. Out: which fault each check detects,
which legal variants are accepted, which changes of a good reply go undetected, and the stored scores.
Production code imports nothing of this but the reader of the stored scores.
"""
