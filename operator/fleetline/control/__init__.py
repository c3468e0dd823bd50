"""One turn of the loop: observe, model, decide, act; over small ports."""
