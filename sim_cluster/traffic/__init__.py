"""
Traffic: load shapes and traces in open loop, a router that balances them, and the truth about both.

    shapes     how many requests arrive, over time
    lengths    how many tokens they bring and ask for
    arrivals   both together: the moments and sizes of requests, from shapes or traces
    router     a gateway before the pods of a Service
    truth      what really happened to every request
"""
