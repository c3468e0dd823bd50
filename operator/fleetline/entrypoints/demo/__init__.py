"""
The demo: a day's load in a few minutes on a local cluster, watched while it happens.

    scenario   what is deployed and how the load swings
    recorder   what happened, second by second
    screen     the live view of a terminal, and plain lines where there is none
    summary    the numbers at the end
    page       the same as one self-contained HTML page
"""
