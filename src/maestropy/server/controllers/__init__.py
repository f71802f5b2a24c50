"""The server's controllers, writers and dispatchers: each reads the database, asks `decide` and acts.

`spec` and `status` are the two directions of the loop. No controller imports another, in its own room or elsewhere.
"""
