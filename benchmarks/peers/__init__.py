"""Peers with a virtual environment of their own: their requirements must not conflict with ours.

`environments` makes the environments. Each other module runs inside one: it reads requests as JSON
from standard input and answers with JSON on standard output. These modules import nothing of ours
but `peak`.
"""
