"""Programs to compare with that have a virtual environment of their own: what they need must not
meet what we need.

`environments` makes the environments; each other module runs inside one, told by JSON on standard
input, and answers with JSON on standard output. They import nothing of ours but `peak`.
"""
