"""The canary's rules: counts of both arms in, a decision out. No I/O, no clock, no environment.

    counts          two scrapes of the gateway → what happened between them, or why that is not known
    regression      FAIL: the canary's error rate is shown to be over `ratio_tolerated` times the stable one
    noninferiority  PASS: the ratio is shown to be under `ratio_max` …
    ceiling         … or the canary's own rate under `harmless_rate`
    acceptance      one of the two: the average of both e-values
    split           whether the gateway split as it was asked to
    outage          intervals in which the stable arm is in trouble, and which count for nothing good
    stages          the plan, stage by stage
    judge           evidence over the whole ramp, and what follows from it
    record          the same as JSON lines, from which the decision can be computed again
    curves          the report's pictures

Every test is anytime-valid: it may be looked at after each scrape and stopped on at any. An e-process E starts at 1 and
is, if the null hypothesis holds, no larger in expectation whenever one stops; so it ever reaches 1/α with
probability α at most (Ville's inequality).
Source: Ville 1939; Ramdas et al., Game-theoretic statistics and safe anytime-valid inference, 2023.
"""
