"""Models that other programs have trained, as players: `onnx:`, `sb3:`, `rllib:`, `python:`.

One module a format. Each reads a file, finds out what the model observes and hands a `Model` to the
`PolicyAgent` that all share. What a format needs is imported when such an agent is made.
"""
