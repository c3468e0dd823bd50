"""
Serving in virtual time: replicas that batch continuously, and fleets of them.

`replica` steps one replica iteration by iteration and is the reference that reads like the
algorithm; `fleet` runs whole fleets through a compiled event loop that leaps over runs of
identical steps and agrees with it.
"""
