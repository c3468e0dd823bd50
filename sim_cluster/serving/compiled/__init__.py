"""
The event loop of a whole fleet, compiled: cost grows with requests, not with tokens.

A replica sleeps until the composition of its batch changes. Between two changes every step
carries the same sequences and each context grows by one token, so step times form an arithmetic
series (two of them where the roofline bends) and a run of steps is leapt over in closed form.
"""
