"""One operator process: its objects are made, started in order, and stopped in the reverse order.

No rule of the operator stands here: it only makes, starts and stops.
"""
