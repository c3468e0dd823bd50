"""
What can one replica do?  Numbers in, numbers out.

    L = lambda W                         Little's law, at every boundary
    t(N) = max(bytes / bandwidth, flop / compute) + overheads     one step of the batch
    ceiling = largest arrival rate at which every percentile objective still holds
"""
